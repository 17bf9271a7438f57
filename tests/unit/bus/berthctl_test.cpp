// SPDX-License-Identifier: Apache-2.0
// The real berthctl against the real service.
#include "../cli/program.h"
#include "fixture.h"
#include "tests/paths.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace berth::test {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kWeb = "system.slice/web@1.service";

class BerthctlOnTheBus : public BusServiceTest {
 protected:
  Ran berthctl(const std::string& arguments) {
    return with_client([arguments] { return run_shell("berthctl " + arguments); });
  }
  // As another user, which need not be able to enter the build directory.
  Ran berthctl_as(uid_t uid, const std::string& arguments) {
    std::string pattern = (std::filesystem::temp_directory_path() / "berthctl-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    const std::filesystem::path directory = pattern;
    std::filesystem::permissions(directory, std::filesystem::perms(0755));
    std::filesystem::copy_file(BERTHCTL, directory / "berthctl");
    Ran ran = with_client_as(
        uid, [command = (directory / "berthctl").string() + " " + arguments] { return run_shell(command); });
    std::filesystem::remove_all(directory);
    return ran;
  }

  static void expect_complaint(const Ran& ran, int exit, const std::string& about) {
    EXPECT_EQ(ran.exit, exit) << ran.err;
    EXPECT_EQ(lines_of(ran.err), 1) << ran.err;
    EXPECT_THAT(ran.err, StartsWith("berthctl: "));
    EXPECT_THAT(ran.err, HasSubstr(about));
  }
};

TEST_F(BerthctlOnTheBus, PrintsTheDaemonsDocuments) {
  EXPECT_EQ(berthctl("status --json").out, control_.status_json() + "\n");
  EXPECT_EQ(berthctl("list --json").out, control_.workloads_json() + "\n");
  EXPECT_EQ(berthctl("snapshot").out, control_.snapshot_json() + "\n");
  EXPECT_EQ(berthctl("plan --json").out, control_.plan_json() + "\n");
  EXPECT_EQ(berthctl("log --json -n 7").out, control_.log_json(7) + "\n");
  EXPECT_EQ(berthctl("log --json").out, control_.log_json(20) + "\n");
  EXPECT_EQ(berthctl("metrics").out, control_.metrics_text());
  EXPECT_EQ(json::parse(berthctl("metrics --json").out),
            (json{{"schema", "berth.metrics/1"}, {"text", control_.metrics_text()}}));
}

TEST_F(BerthctlOnTheBus, ShowsThemToPeople) {
  EXPECT_THAT(berthctl("status").out, HasSubstr("observe"));
  EXPECT_THAT(berthctl("list").out, HasSubstr("No workloads"));
  EXPECT_THAT(berthctl("log").out, HasSubstr("Nothing was decided"));
  EXPECT_THAT(berthctl("plan").out, HasSubstr("Plan for node-a"));
}

TEST_F(BerthctlOnTheBus, PlansTheDaemonsSnapshotWithOtherSettings) {
  const Ran ran = berthctl("plan --json -o interference.weighting=request");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out).at("findings").at("interference").at("weighting"), "request");
}

TEST_F(BerthctlOnTheBus, SwitchesTheMode) {
  const Ran ran = berthctl("mode enforce");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(control_.mode_now, "enforce");
  EXPECT_EQ(json::parse(berthctl("mode observe --json").out).at("mode"), "observe");
}

TEST_F(BerthctlOnTheBus, ReportsProgress) {
  const Ran ran = berthctl(std::string("progress ") + kWeb + " 42/100");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("42 %"));
  EXPECT_EQ(control_.progress[kWeb], 0.42);
  const json document = json::parse(berthctl(std::string("progress --json ") + kWeb + " 0.5").out);
  EXPECT_EQ(document, (json{{"schema", "berth.progress/1"}, {"workload", kWeb}, {"progress", 0.5}}));
}

TEST_F(BerthctlOnTheBus, SaysWhyProgressWasNotTaken) {
  expect_complaint(berthctl(std::string("progress ") + kWeb + " 101/100"), 2, "neither a fraction");
  expect_complaint(berthctl(std::string("progress ") + kWeb + " nan"), 2, "neither a fraction");
  expect_complaint(berthctl("progress no/such 0.5"), 1, "no such workload");
  expect_complaint(berthctl("progress self 0.5"), 1, "runs in no workload");
  if (!root()) return;
  expect_complaint(berthctl_as(kNobody, std::string("progress ") + kWeb + " 0.5"), 3,
                   "org.berth.node1.report-progress");
}

TEST_F(BerthctlOnTheBus, Evicts) {
  control_.add("batch.service").workload_class = "best-effort";
  const Ran ran = berthctl("evict --yes batch.service");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("d-0123456789ab"));
  EXPECT_EQ(
      json::parse(berthctl("evict --yes --json batch.service").out),
      (json{{"schema", "berth.evict/1"}, {"workload", "batch.service"}, {"decision", "d-0123456789ab"}}));
  EXPECT_EQ(control_.evicted.size(), 2U);
}

TEST_F(BerthctlOnTheBus, EvictsNobodyWithoutConsent) {
  control_.add("batch.service").workload_class = "best-effort";
  expect_complaint(berthctl("evict batch.service < /dev/null"), 2, "--yes");
  expect_complaint(berthctl(std::string("evict --yes ") + kWeb), 3, "it is latency-sensitive");
  expect_complaint(berthctl("evict --yes no/such"), 1, "no such workload");
  expect_complaint(berthctl("evict --yes"), 2, "workload");
  if (root()) {
    expect_complaint(berthctl_as(kNobody, "evict --yes batch.service"), 3, "org.berth.node1.evict");
  }
  EXPECT_TRUE(control_.evicted.empty());
}

TEST_F(BerthctlOnTheBus, PrintsTheDaemonsExplanation) {
  EXPECT_EQ(berthctl(std::string("explain --json ") + kWeb).out, control_.explain_json(kWeb).value() + "\n");
  expect_complaint(berthctl("explain no/such"), 1, "no such thing");
}

TEST_F(BerthctlOnTheBus, SetsAWorkload) {
  const Ran ran = berthctl(std::string("set ") + kWeb + " class=best-effort vcpus=2");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(control_.settings[kWeb],
            (std::map<std::string, std::string>{{"class", "best-effort"}, {"vcpus", "2"}}));
}

TEST_F(BerthctlOnTheBus, TakesBackWhatWasSet) {
  const Ran ran = berthctl(std::string("set ") + kWeb + " --reset priority=3");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(control_.settings[kWeb], (std::map<std::string, std::string>{{"class", ""},
                                                                         {"deadline", ""},
                                                                         {"evictable", ""},
                                                                         {"priority", "3"},
                                                                         {"service", ""},
                                                                         {"vcpus", ""}}));
  EXPECT_EQ(berthctl(std::string("set ") + kWeb + " --reset").exit, 0);
  expect_complaint(berthctl(std::string("set ") + kWeb), 2, "--reset");
  expect_complaint(berthctl(std::string("set ") + kWeb + " vcpus="), 2, "no value");
}

TEST_F(BerthctlOnTheBus, AsksToBeLetInAndEndsByTheAnswer) {
  const std::string file = ::testing::TempDir() + "berth-request.json";
  std::ofstream(file) << R"({"schema": "berth.request/1", "id": "job", "vcpus": 2})";
  const std::string head =
      R"({"schema":"berth.admission/1","host":"a","time":1,"request":{"id":"job","class":"best-effort","vcpus":2},)";
  control_.admission =
      head + R"("admitted":true,"until":31,"reason":"it fits","change":[],"fitting":[],"rejected":[]})";
  const Ran let_in = berthctl("admit --hold 30s --request " + file);
  EXPECT_EQ(let_in.exit, 0) << let_in.err;
  EXPECT_THAT(let_in.out, HasSubstr("admitted, its place is held until"));
  ASSERT_EQ(control_.asked.size(), 1U);
  EXPECT_EQ(control_.asked[0].second, 30);
  control_.admission = head +
                       R"("admitted":false,"until":null,"reason":"it is full","change":["ask for less"],)"
                       R"("fitting":[],"rejected":[{"host":"a","numa":0,"reason":"full"}]})";
  const Ran refused = berthctl("admit --request " + file);
  EXPECT_EQ(refused.exit, 3);
  EXPECT_THAT(refused.out, HasSubstr("ask for less"));
  EXPECT_THAT(refused.err, HasSubstr("\"job\" is refused: it is full"));
  EXPECT_EQ(berthctl("admit --json --request " + file).out, control_.admission + "\n");
  EXPECT_EQ(berthctl("admit --hold soon --request " + file).exit, 2);
  EXPECT_EQ(berthctl("admit --request /nowhere").exit, 2);
}

TEST_F(BerthctlOnTheBus, ShowsForWhomAPlaceIsKept) {
  EXPECT_THAT(berthctl("admit --list").out, HasSubstr("There are no reservations."));
  control_.reservations =
      R"({"schema":"berth.reservations/1","host":"a","time":1,"reservations":[{"request":{"id":"job","class":"best-effort",)"
      R"("vcpus":2,"memory_request_bytes":1048576},"decision":"d-0123456789ab","since":1,"until":121,)"
      R"("place":{"numa":1,"cpus":"4-7","gpus":[]}},{"request":{"id":"other"},"place":null}]})";
  const Ran listed = berthctl("admit --list");
  EXPECT_EQ(listed.exit, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("4-7"));
  EXPECT_THAT(listed.out, HasSubstr("1.0 MiB"));
  EXPECT_THAT(listed.out, HasSubstr("d-0123456789ab"));
  EXPECT_EQ(berthctl("admit --list --json").out, control_.reservations + "\n");
}

TEST_F(BerthctlOnTheBus, GivesAPlaceUp) {
  const Ran ran = berthctl("admit --cancel job");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("its place is free again (d-0123456789ab)"));
  EXPECT_EQ(berthctl("admit --cancel job --json").out,
            R"({"decision":"d-0123456789ab","id":"job","schema":"berth.cancel/1"})"
            "\n");
  EXPECT_EQ(control_.cancelled.size(), 2U);
  expect_complaint(berthctl("admit --cancel other"), 1, "there is no reservation with this id");
  expect_complaint(berthctl("admit --cancel ''"), 2, "is not a request's id");
  expect_complaint(berthctl("admit"), 2, "--request, --list or --cancel");
  EXPECT_EQ(berthctl("admit --list --cancel job").exit, 2);
  EXPECT_EQ(berthctl("admit --list --request /dev/null").exit, 2);
  EXPECT_EQ(control_.cancelled.size(), 2U);
}

TEST_F(BerthctlOnTheBus, RestoresThroughTheDaemon) {
  const Ran ran = berthctl("restore");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(control_.restores, 1);
  EXPECT_THAT(ran.out, HasSubstr("0 put back"));
}

TEST_F(BerthctlOnTheBus, TheDaemonsErrorsHaveTheirExitStatus) {
  expect_complaint(berthctl("reload"), 1, "the disk is on fire");
  expect_complaint(berthctl("set no/such vcpus=2"), 1, "no/such");
  expect_complaint(berthctl(std::string("set ") + kWeb + " vcpus=many"), 2, "vcpus");
}

TEST_F(BerthctlOnTheBus, OthersAreRefusedAndToldWhatWouldHelp) {
  const Ran ran = berthctl_as(kNobody, "mode enforce");
  expect_complaint(ran, 3, "run as root");
  EXPECT_THAT(ran.err, HasSubstr("org.berth.node1.manage"));
  EXPECT_EQ(control_.mode_now, "observe");
  expect_complaint(berthctl_as(kNobody, "restore"), 3, "run as root");
  EXPECT_EQ(control_.restores, 0);
}

TEST_F(BerthctlOnTheBus, OthersMayLook) {
  const Ran ran = berthctl_as(kNobody, "status --json");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out, control_.status_json() + "\n");
}

TEST_F(BerthctlOnTheBus, PolkitMayLetOthers) {
  auto polkit = FakePolkit::start(FakePolkit::Answer::yes);
  EXPECT_EQ(berthctl_as(kNobody, "mode enforce").exit, 0);
  EXPECT_EQ(control_.mode_now, "enforce");
}

TEST_F(BerthctlOnTheBus, ABusWithoutADaemonIsUnreachable) {
  service_.reset();
  expect_complaint(berthctl("status"), 4, "systemctl start berthd");
  expect_complaint(berthctl("mode enforce"), 4, "systemctl start berthd");
}

TEST_F(BerthctlOnTheBus, ADaemonThatIsStoppedIsNotCalledAbsent) {
  // It has the name, and no process serves it.
  auto status = std::async(std::launch::async, [] { return run_shell("berthctl status"); });
  const Ran reload = run_shell("berthctl reload");
  for (const Ran& ran : {reload, status.get()}) {
    expect_complaint(ran, 4, "berthd does not answer");
    EXPECT_EQ(ran.err.find("systemctl start"), std::string::npos) << ran.err;
  }
}

TEST(BerthctlWithoutABus, ASilentBusIsGivenUpSoon) {
  const SilentBus silence;
  for (const char* command : {"status", "mode enforce"}) {
    const Ran ran = run_shell(std::string("berthctl ") + command);
    EXPECT_EQ(ran.exit, 4);
    EXPECT_THAT(ran.err, HasSubstr("it does not answer within 2 s"));
  }
}

}  // namespace berth::test
