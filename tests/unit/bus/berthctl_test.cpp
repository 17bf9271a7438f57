// SPDX-License-Identifier: Apache-2.0
// The real berthctl against the real service.
#include "../cli/program.h"
#include "fixture.h"
#include "tests/paths.h"
#include "trace/reader.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>
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

TEST_F(BerthctlOnTheBus, BlameTellsTheWaitsOfItsTimeAlone) {
  const Ran ran = berthctl("blame web --for 100ms --json");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  // Of the first answer that counts, 20 ms were before.
  const auto document = json::parse(ran.out);
  EXPECT_EQ(document["schema"], "berth.blame/1");
  EXPECT_EQ(document["waited_ms"], 10);
  EXPECT_EQ(document["seconds"], 1);
  ASSERT_EQ(document["culprits"].size(), 1U);
  EXPECT_EQ(document["culprits"][0]["name"], "a/hog");
  EXPECT_THAT(control_.blamed, testing::Each("web"));
  EXPECT_THAT(berthctl("blame web --for 100ms").out, HasSubstr("waited 10.0 ms"));
}

TEST_F(BerthctlOnTheBus, BlameTakesWorkloadsByTheirShortNames) {
  EXPECT_EQ(berthctl(fmt::format("blame {} --for 100ms", kWeb)).exit, 0);
  expect_complaint(berthctl("blame nothing --for 100ms"), 1, "no such service");
}

TEST_F(BerthctlOnTheBus, ProfilesGoBothWays) {
  EXPECT_EQ(berthctl("profile export").out, control_.profiles_json() + "\n");
  EXPECT_EQ(berthctl("profile list --json").out, control_.models_json() + "\n");
  EXPECT_THAT(berthctl("profile list").out, HasSubstr("no service has been observed"));
  EXPECT_THAT(berthctl("list --model").out, HasSubstr("no latency-sensitive workload"));
  control_.listed = R"({"workloads":[{"id":"a","service":"web","class":"latency-sensitive"}]})";
  EXPECT_THAT(berthctl("list --model").out, HasSubstr("web: nothing is learned of it yet"));
  EXPECT_EQ(json::parse(berthctl("list --model --json").out)["services"][0]["origin"], "default");
  EXPECT_EQ(berthctl("profile forget web").exit, 0);
  EXPECT_EQ(control_.forgotten, std::vector<std::string>{"web"});
  expect_complaint(berthctl("profile forget other"), 1, "nothing is learned");
  const auto file = std::filesystem::temp_directory_path() / "berthctl-profiles.json";
  std::ofstream(file)
      << R"({"schema":"berth.profiles/1","profiles":[{"service":"s","response":"cpi","time":1,)"
      << R"("rows":{"n":0,"x":[0,0,0],"xx":[0,0,0,0,0,0],"xy":[0,0,0],"y":0,"yy":0},)"
      << R"("level":[0,0,0],"spent":0,"errors":{"n":0,"model":0,"default":0,"constant":0,)"
      << R"("llc_n":0,"llc_without":0,"llc_with":0}}]})";
  EXPECT_EQ(berthctl("profile import " + file.string()).out, "added 1 profile\n");
  std::filesystem::remove(file);
  ASSERT_EQ(control_.imported.size(), 1U);
  EXPECT_EQ(json::parse(control_.imported[0])["profiles"][0]["service"], "s");
}

// A snapshot of now and so many seconds later, with one workload and one sample.
std::string snapshot_at(double time) {
  return fmt::format(
      R"({{"schema":"berth.snapshot/1","host":"node-a","time":{0},"topology":{{"cpus":[{{"cpu":0,"core":0}}]}},)"
      R"("workloads":[{{"id":"w","class":"best-effort","usage":[{{"time":{0},"cpu":0.5}}]}}]}})",
      time);
}

trace::Reader read_trace(const std::filesystem::path& file) {
  auto in = std::make_shared<std::ifstream>(file, std::ios::binary);
  auto reader = trace::Reader::open([in](char* buffer, std::size_t size) {
    in->read(buffer, static_cast<std::streamsize>(size));
    return model::Result<std::size_t>(static_cast<std::size_t>(in->gcount()));
  });
  if (!reader) throw std::runtime_error(reader.error().message());
  return std::move(*reader);
}

class Recording : public BerthctlOnTheBus {
 protected:
  void SetUp() override {
    BerthctlOnTheBus::SetUp();
    std::string pattern = (std::filesystem::temp_directory_path() / "record-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    // Not later than the clock, as a daemon's ticks are.
    now_ = std::floor(
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count() - 10);
    control_.snapshot = snapshot_at(now_);
    control_.ticks = {snapshot_at(now_ + 1), snapshot_at(now_ + 1), snapshot_at(now_ + 2)};
  }
  void TearDown() override {
    std::filesystem::remove_all(directory_);
    BerthctlOnTheBus::TearDown();
  }

  // The trace is complete, and has those of the three ticks for which there was time.
  void expect_trace(const std::filesystem::path& file) {
    auto reader = read_trace(file);
    EXPECT_EQ(reader.header().host, "node-a");
    EXPECT_EQ(reader.header().history, 7);
    while (reader.next()) {
      const auto& snapshot = reader.snapshot();
      EXPECT_EQ(snapshot.time, now_ + static_cast<double>(reader.ticks()) - 1);
      EXPECT_EQ(snapshot.workloads.at(0).usage.size(), reader.ticks());
    }
    EXPECT_EQ(reader.cut(), std::nullopt);
    EXPECT_GE(reader.ticks(), 1U);
    EXPECT_LE(reader.ticks(), 3U);
    if (!control_.asked_since.empty()) {
      EXPECT_EQ(control_.asked_since.front(), now_);
    }
  }

  std::filesystem::path directory_;
  double now_ = 0;
};

TEST_F(Recording, WritesEachTickOnce) {
  const auto file = directory_ / "a.zst";
  const Ran ran = berthctl("record --for 1s -o " + file.string());
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr(file.string()));
  expect_trace(file);
}

TEST_F(Recording, EndsProperlyAtASignal) {
  const auto file = directory_ / "a.zst";
  // As soon as it waits for signals: of SIGHUP, SIGINT and SIGTERM. A shell that forks and a program that
  // starts a thread block more for a moment.
  const Ran ran = with_client([&] {
    const std::string waits = "grep -q '^SigBlk:.*000000004003$' /proc/$$/status";
    return run_shell("(while [ -e /proc/$$ ] && ! " + waits + "; do sleep 0.02; done; kill -INT $$) & exec " +
                     BERTHCTL + " record --json -o " + file.string());
  });
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["schema"], "berth.record/1");
  expect_trace(file);
}

TEST_F(Recording, HasANameOfItsOwnAndGoesToStandardOutput) {
  const Ran ran = with_client([&] {
    return run_shell("cd " + directory_.string() +
                     " && berthctl record --for 10ms && berthctl record --for 10ms -o - >b.zst");
  });
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("berth-node-a-"));
  EXPECT_THAT(ran.err, HasSubstr("1 tick in standard output"));
  expect_trace(directory_ / "b.zst");
}

TEST_F(Recording, OverwritesNothing) {
  const auto file = directory_ / "a.zst";
  std::ofstream(file) << "mine";
  expect_complaint(berthctl("record --for 10ms -o " + file.string()), 2, "writes no file anew");
  EXPECT_EQ(std::filesystem::file_size(file), 4U);
  expect_complaint(berthctl("record --for never"), 2, "--for");
}

TEST_F(BerthctlOnTheBus, PrintsTheDaemonsDocuments) {
  EXPECT_EQ(berthctl("status --json").out, control_.status_json() + "\n");
  EXPECT_EQ(berthctl("list --json").out, control_.workloads_json() + "\n");
  EXPECT_EQ(berthctl("snapshot").out, control_.snapshot_json() + "\n");
  EXPECT_EQ(berthctl("plan --json").out, control_.plan_json() + "\n");
  EXPECT_EQ(berthctl("log --json -n 7").out, control_.log_json(7) + "\n");
  EXPECT_EQ(berthctl("log --json").out, control_.log_json(20) + "\n");
  EXPECT_EQ(berthctl("metrics").out, control_.metrics_text());
  EXPECT_EQ(
      berthctl("metrics --openmetrics").out,
      "# TYPE berth_build_info gauge\n# HELP berth_build_info \\\"quoted\\\"\nberth_build_info 1\n# EOF\n");
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

// Two entries of the log, one decision each.
constexpr const char* kFound = R"({"schema":"berth.log/1","entries":[{"time":1,"decision":"d-2","kind":"pin",
  "workload":"job.service","attribute":"cpuset.cpus","old":"","new":"4-7","policy":"interference","reason":"quiet",
  "result":"applied","error":null},{"time":0,"decision":"d-1","kind":"evict","workload":"job.service",
  "attribute":"end","old":"4096","new":"","policy":"eviction","reason":"memory","result":"applied","error":null}]})";

TEST_F(BerthctlOnTheBus, SearchesTheLog) {
  control_.log_found = kFound;
  const Ran ran = berthctl("log --since @100 --workload job --policy interference --kind pin");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(
      ran.out,
      HasSubstr("job.service now runs on vCPUs 4-7 (before: all vCPUs)\n    interference d-2: quiet"));
  using Filter = std::map<std::string, std::string>;
  ASSERT_EQ(control_.searches.size(), 1U);
  EXPECT_EQ(control_.searches[0].first,
            (Filter{{"since", "100.000"}, {"workload", "job"}, {"policy", "interference"}, {"kind", "pin"}}));
  EXPECT_EQ(control_.searches[0].second, 10'000U) << "all since then";
  EXPECT_EQ(berthctl("log --json --kind pin -n 3").out, control_.log_found + "\n");
  EXPECT_EQ(control_.searches.back().second, 3U);
  control_.log_found = R"({"schema":"berth.log/1","entries":[]})";
  EXPECT_THAT(berthctl("log --kind leaf").out, HasSubstr("No entry of the log matches."));
}

TEST_F(BerthctlOnTheBus, ExplainsByTheLogToo) {
  control_.log_found = kFound;
  const Ran ran = berthctl(std::string("explain --json --since @0 --kind pin ") + kWeb);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  const json document = json::parse(ran.out);
  EXPECT_EQ(document.at("subject"), kWeb);
  EXPECT_EQ(document.at("entries"), json::parse(kFound).at("entries"));
  EXPECT_EQ(control_.searches.back().first.at("workload"), kWeb);
  // It ended; the log knows it.
  const Ran ended = berthctl("explain job");
  EXPECT_EQ(ended.exit, 0) << ended.err;
  EXPECT_THAT(ended.out, StartsWith("job: no workload of this name runs now\n"));
  EXPECT_THAT(ended.out, HasSubstr("job.service has ended (4.0 KiB in use)\n      eviction d-1: memory"));
  control_.log_found = R"({"schema":"berth.log/1","entries":[]})";
  expect_complaint(berthctl("explain job"), 1, "no such thing");
}

TEST_F(BerthctlOnTheBus, WatchesDecisions) {
  daemon::LogEntry entry;
  entry.time = 1;
  entry.decision = "d-7";
  entry.kind = "pin";
  entry.workload = kWeb;
  entry.attribute = "cpuset.cpus";
  entry.new_value = "0-3";
  entry.policy = "interference";
  entry.reason = "quiet there";
  entry.result = "observed";
  const auto watch = [&](const std::string& arguments) {
    auto ran =
        std::async(std::launch::async, [arguments] { return run_shell("berthctl watch " + arguments); });
    serve_until([&] {
      service_->decided(entry);
      service_->straggler_found({"job", "too slow", {}, "d-8"});
      return ran.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    return ran.get();
  };
  // One kind each: a signal may come before the bus knows that the command wants the other kind.
  const Ran sentences = watch("-n 1 --policy interference");
  EXPECT_EQ(sentences.exit, 0) << sentences.err;
  EXPECT_THAT(sentences.out,
              HasSubstr("berth would pin system.slice/web@1.service to vCPUs 0-3 (now all vCPUs)\n"
                        "    interference d-7: quiet there\n"));
  EXPECT_THAT(watch("-n 1 --policy straggler").out,
              HasSubstr("job will miss its deadline\n    straggler d-8: too slow\n"));
  const Ran one = watch("-n 1 --workload web@1 --json");
  EXPECT_EQ(lines_of(one.out), 1);
  const json news = json::parse(one.out);
  EXPECT_EQ(news.at("schema"), "berth.watch/1");
  EXPECT_EQ(news.at("decision"), "d-7");
  EXPECT_EQ(news.at("error"), nullptr);
  EXPECT_EQ(json::parse(watch("-n 1 --policy straggler --json").out).at("workload"), "job");
  // Its reader ends.
  EXPECT_EQ(lines_of(watch("| head -n 1").out), 1);
}

TEST_F(BerthctlOnTheBus, WatchingEndsWithTheDaemon) {
  const std::string file = ::testing::TempDir() + "berth-watched";
  std::filesystem::remove(file);
  auto ran = std::async(std::launch::async, [file] { return run_shell("berthctl watch > " + file); });
  daemon::LogEntry entry;
  entry.kind = "pin";
  serve_until([&] {
    service_->decided(entry);
    std::error_code none_yet;
    return std::filesystem::file_size(file, none_yet) > 0 && !none_yet;
  });
  service_.reset();
  expect_complaint(ran.get(), 4, "berthd has left the bus");
  std::filesystem::remove(file);
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
                                                                         {"force", ""},
                                                                         {"isolation", ""},
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
