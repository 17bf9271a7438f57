// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include "fake_node.h"
#include "model/json.h"
#include "policies/decide.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using nlohmann::json;

class DaemonTest : public testing::Test {
 protected:
  void configure(const std::string& head) { node.configure(head + test::kMixedLoad); }
  Daemon& start() {
    auto started = Daemon::start(node.options(), node.settings(), [this] { return now; });
    if (!started) throw std::runtime_error(started.error().message());
    daemon = std::move(*started);
    return *daemon;
  }
  void tick() {
    now += 1;
    daemon->tick();
  }
  void load_node() {
    node.add_group("web/a");
    node.add_group("web/b");
    node.add_group("batch/x", "0-7");
  }
  json capability(const std::string& name) {
    const auto status = json::parse(daemon->status_json());
    for (const auto& item : status["capabilities"]) {
      if (item["name"] == name) return item;
    }
    return nullptr;
  }

  test::FakeNode node;
  std::unique_ptr<Daemon> daemon;
  double now = 1000;
};

TEST_F(DaemonTest, ShowsTheProgressThatIsReported) {
  load_node();
  start();
  tick();
  ASSERT_TRUE(daemon->report_progress("web/a", 0.25));
  tick();
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->workload("web/a")->progress == 0.25;
  }));
  const auto listed = json::parse(daemon->workloads_json())["workloads"];
  EXPECT_EQ(listed[1]["progress"], 0.25);
  EXPECT_EQ(listed[2]["progress"], nullptr);
  EXPECT_NE(daemon->metrics_text().find("berth_workload_progress_ratio"), std::string::npos);
  EXPECT_EQ(daemon->report_progress("no/such", 0.5).error().kind(), model::ErrorKind::gone);
  EXPECT_EQ(daemon->report_progress("web/a", 2).error().kind(), model::ErrorKind::invalid_input);
}

TEST_F(DaemonTest, ReadsTheProgressFileOfARule) {
  const auto file = node.state_dir() / "a.progress";
  node.configure(std::string(test::kMixedLoad) +
                 "[[workload]]\nmatch = \"job/*\"\nclass = \"latency-sensitive\"\n" +
                 "progress = {file = \"" + (node.state_dir() / "%n.progress").string() + "\"}\n");
  node.add_group("job/a");
  start();
  tick();
  std::ofstream(file) << "3/4\n";
  EXPECT_TRUE(test::eventually([&] {
    tick();
    return daemon->workload("job/a")->progress == 0.75;
  }));
}

TEST_F(DaemonTest, FindsTheWorkloadOfAProcess) {
  load_node();
  start();
  tick();
  const auto process = node.proc() / "42";
  std::filesystem::create_directories(process);
  std::ofstream(process / "cgroup") << "0::/web/a/inner/most\n";
  std::ofstream(process / "status") << "Uid:\t1000\t1000\t1000\t1000\n";
  EXPECT_EQ(daemon->workload_of(42, 1000), "web/a");
  EXPECT_EQ(daemon->workload_of(42, 1001), std::nullopt);
  std::ofstream(process / "cgroup") << "0::/web\n";
  EXPECT_EQ(daemon->workload_of(42, 1000), std::nullopt);
}

TEST_F(DaemonTest, ExplainsWorkloadsAndDecisions) {
  load_node();
  start();
  tick();
  auto document = json::parse(daemon->explain_json("web/a").value());
  EXPECT_EQ(document["schema"], "berth.explain/1");
  EXPECT_EQ(document["decision"], nullptr);
  EXPECT_EQ(document["workload"]["id"], "web/a");
  const auto& pin = document["workload"]["pin"];
  EXPECT_NEAR(pin["score"].get<double>(),
              pin["k1"].get<double>() * pin["cpu_sc"].get<double>() +
                  pin["k2"].get<double>() * pin["cpu_ss"].get<double>(),
              1e-12);

  const auto entry = json::parse(daemon->log_json(1))["entries"][0];
  document = json::parse(daemon->explain_json(entry["decision"].get<std::string>()).value());
  EXPECT_EQ(document["decision"]["id"], entry["decision"]);
  EXPECT_EQ(document["decision"]["entries"][0], entry);
  EXPECT_EQ(document["workload"]["id"], entry["workload"]);

  EXPECT_EQ(daemon->explain_json("no/such").error().kind(), model::ErrorKind::gone);
  EXPECT_EQ(daemon->explain_json("").error().kind(), model::ErrorKind::gone);
}

TEST_F(DaemonTest, ObserveWritesNothingAndLogsWhatItWouldDo) {
  load_node();
  start();
  const auto before = node.tree_bytes();
  for (int i = 0; i < 20; ++i) {
    node.use_cpu("web/a", i * 0.001);
    tick();
  }
  node.use_cpu("web/a", 0);
  EXPECT_EQ(node.tree_bytes(), before);
  const auto log = json::parse(daemon->log_json(0))["entries"];
  ASSERT_EQ(log.size(), 3U) << "what enforcing would have done once, not every tick's plan";
  for (const auto& entry : log) {
    EXPECT_EQ(entry["result"], "observed");
    EXPECT_EQ(entry["mode"], "observe");
  }
  daemon->stop();
  EXPECT_EQ(node.tree_bytes(), before);
}

TEST_F(DaemonTest, ThePlanShownInObserveIsOfTheSnapshotShown) {
  load_node();
  start();
  for (int i = 0; i < 3; ++i) tick();
  const auto snapshot = model::parse_snapshot(daemon->snapshot_json());
  ASSERT_TRUE(snapshot);
  for (const auto& workload : snapshot->snapshot.workloads) EXPECT_TRUE(workload.cpus.empty());
  const auto plan = model::parse_plan(daemon->plan_json());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->actions.size(), 3U) << "what enforcing would begin with, however long it has been observed";
  EXPECT_EQ(plan->actions, policies::decide(snapshot->snapshot, node.settings().policies).actions);
}

TEST_F(DaemonTest, TheShadowFollowsWhatComesAndGoes) {
  load_node();
  start();
  tick();
  node.add_group("web/c");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->counts().latency_sensitive == 3;
  }));
  // The new one is placed, and the pool of the best-effort one shrinks.
  const auto log = json::parse(daemon->log_json(2))["entries"];
  std::set<std::string> changed;
  for (const auto& entry : log) changed.insert(entry["workload"]);
  EXPECT_EQ(changed, (std::set<std::string>{"batch/x", "web/c"}));
  node.restart_group("web/c");
  const auto before = json::parse(daemon->log_json(0))["entries"].size();
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return json::parse(daemon->log_json(0))["entries"].size() > before;
  })) << "the next run has to be placed again";
  EXPECT_EQ(json::parse(daemon->log_json(1))["entries"][0]["workload"], "web/c");
}

TEST_F(DaemonTest, EnforcePinsAsThePlanOfTheSameSnapshotSays) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  const auto plan = model::parse_plan(daemon->plan_json());
  ASSERT_TRUE(plan);
  ASSERT_FALSE(plan->actions.empty());
  for (const auto& action : plan->actions) {
    const auto& pin = std::get<model::PinAction>(action.what);
    EXPECT_EQ(node.cpus(pin.workload), pin.cpus.to_string());
  }
  const auto snapshot = model::parse_snapshot(daemon->snapshot_json());
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  EXPECT_EQ(snapshot->snapshot.workloads.size(), 3U);
}

TEST_F(DaemonTest, StopPutsEverythingBack) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  const auto before = node.tree_bytes();
  tick();
  ASSERT_NE(node.tree_bytes(), before);
  daemon->stop();
  EXPECT_EQ(node.cpus("web/a"), "");
  EXPECT_EQ(node.cpus("batch/x"), "0-7");
}

TEST_F(DaemonTest, SwitchingModesPinsAndRestores) {
  load_node();
  start();
  tick();
  ASSERT_TRUE(daemon->set_mode("enforce"));
  EXPECT_EQ(daemon->mode(), "enforce");
  tick();
  EXPECT_NE(node.cpus("web/a"), "");
  EXPECT_EQ(json::parse(daemon->status_json())["undo_records"], 3);
  ASSERT_TRUE(daemon->set_mode("observe"));
  EXPECT_EQ(daemon->mode(), "observe");
  EXPECT_EQ(node.cpus("web/a"), "");
  EXPECT_EQ(node.cpus("batch/x"), "0-7");
  EXPECT_EQ(json::parse(daemon->status_json())["undo_records"], 0);
  const auto bytes = node.tree_bytes();
  tick();
  EXPECT_EQ(node.tree_bytes(), bytes);
}

TEST_F(DaemonTest, UnknownModeIsRefused) {
  start();
  const auto set = daemon->set_mode("shadow");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind(), model::ErrorKind::invalid_input);
}

TEST_F(DaemonTest, RestoreReportsAndStaysInObserve) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  node.put("web/b", "cpuset.cpus", "7");
  const auto report = daemon->restore();
  ASSERT_TRUE(report);
  const auto document = json::parse(*report);
  EXPECT_EQ(document["schema"], "berth.restore/1");
  EXPECT_EQ(document["restored"].size(), 2U);
  ASSERT_EQ(document["left"].size(), 1U);
  EXPECT_EQ(document["left"][0]["workload"], "web/b");
  EXPECT_EQ(daemon->mode(), "observe");
  tick();
  EXPECT_EQ(node.cpus("web/a"), "");
  EXPECT_EQ(node.cpus("web/b"), "7");
}

TEST_F(DaemonTest, WhatACrashLeftIsPutBackAtTheNextStart) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  ASSERT_NE(node.cpus("web/a"), "");
  daemon.reset();  // without stop(), as a crash
  configure("");
  start();
  EXPECT_EQ(node.cpus("web/a"), "");
  EXPECT_EQ(node.cpus("batch/x"), "0-7");
  const auto newest = json::parse(daemon->log_json(1))["entries"][0];
  EXPECT_EQ(newest["result"], "restored");
}

TEST_F(DaemonTest, ReloadTakesNewSettings) {
  load_node();
  start();
  tick();
  EXPECT_EQ(daemon->counts().latency_sensitive, 2U);
  node.configure("[sampling]\ninterval = \"3s\"\n[[workload]]\nmatch = \"web/*\"\nclass = \"best-effort\"\n");
  ASSERT_TRUE(daemon->reload());
  EXPECT_DOUBLE_EQ(daemon->interval_s(), 3);
  tick();
  EXPECT_EQ(daemon->counts().latency_sensitive, 0U);
  EXPECT_EQ(daemon->counts().best_effort, 2U);
  EXPECT_TRUE(json::parse(daemon->status_json())["config"]["error"].is_null());
}

TEST_F(DaemonTest, ReloadThatFailsKeepsTheOldSettings) {
  load_node();
  start();
  node.configure("mode = \"enforce\"\n[sampling]\nintervall = \"3s\"\n");
  const auto reloaded = daemon->reload();
  ASSERT_FALSE(reloaded);
  EXPECT_EQ(reloaded.error().kind(), model::ErrorKind::invalid_input);
  EXPECT_DOUBLE_EQ(daemon->interval_s(), 0.1);
  EXPECT_EQ(daemon->mode(), "observe");
  tick();
  EXPECT_EQ(daemon->counts().latency_sensitive, 2U);
  const std::string error = json::parse(daemon->status_json())["config"]["error"];
  EXPECT_NE(error.find("berth.toml:3:"), std::string::npos) << error;
  EXPECT_NE(daemon->status_line().find("rejected"), std::string::npos);

  configure("");
  ASSERT_TRUE(daemon->reload());
  EXPECT_TRUE(json::parse(daemon->status_json())["config"]["error"].is_null());
}

TEST_F(DaemonTest, ReloadFollowsTheFilesModeButNotOverAModeChosenMeanwhile) {
  load_node();
  start();
  ASSERT_TRUE(daemon->set_mode("enforce"));
  ASSERT_TRUE(daemon->reload());
  EXPECT_EQ(daemon->mode(), "enforce") << "the file says what it said before";
  configure("mode = \"enforce\"\n");
  ASSERT_TRUE(daemon->reload());
  configure("mode = \"observe\"\n");
  ASSERT_TRUE(daemon->reload());
  EXPECT_EQ(daemon->mode(), "observe");
}

TEST_F(DaemonTest, AReloadThatCannotEnforceSaysSoUntilItCan) {
  load_node();
  node.put("", "cgroup.controllers", "cpu memory");
  start();
  EXPECT_TRUE(daemon->reload());
  configure("mode = \"enforce\"\n");
  for (int i = 0; i < 2; ++i) {
    const auto reloaded = daemon->reload();
    ASSERT_FALSE(reloaded) << i;
    EXPECT_NE(reloaded.error().message().find("taken over, but: cannot enforce: "), std::string::npos)
        << reloaded.error().message();
  }
  const auto status = json::parse(daemon->status_json());
  EXPECT_EQ(status["mode"], "observe");
  EXPECT_EQ(status["config"]["mode"], "enforce");
  EXPECT_TRUE(status["config"]["error"].is_null()) << "the file itself is right";
  EXPECT_NE(status["enforce_problem"].get<std::string>().find("cpuset"), std::string::npos);
  ASSERT_TRUE(daemon->set_mode("observe"));
  EXPECT_TRUE(daemon->reload()) << "somebody has decided otherwise since";
}

TEST_F(DaemonTest, AfterARestoreTheStatusTellsWhatTheFileAsksFor) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  ASSERT_TRUE(daemon->restore());
  const auto status = json::parse(daemon->status_json());
  EXPECT_EQ(status["mode"], "observe");
  EXPECT_EQ(status["config"]["mode"], "enforce");
  EXPECT_TRUE(status["enforce_problem"].is_null());
  EXPECT_TRUE(daemon->reload());
  EXPECT_EQ(daemon->mode(), "observe") << "the file says what it said before";
}

TEST_F(DaemonTest, DocumentsAreMadeOnceATick) {
  load_node();
  start();
  tick();
  const auto figures = daemon->metrics_text();
  const auto list = daemon->workloads_json();
  const auto plan = daemon->plan_json();
  std::ofstream(node.proc() / "self/statm") << "2000 1700 100 1 0 1 0\n";
  EXPECT_EQ(daemon->metrics_text(), figures);
  EXPECT_EQ(daemon->workloads_json(), list);
  EXPECT_EQ(daemon->plan_json(), plan);
  ASSERT_TRUE(daemon->set_mode("enforce"));
  const auto enforcing = daemon->metrics_text();
  EXPECT_NE(enforcing, figures) << "the mode is another one";
  tick();
  EXPECT_NE(daemon->metrics_text(), enforcing);
  EXPECT_NE(daemon->workloads_json(), list);
}

TEST_F(DaemonTest, ObserveOptionHoldsAgainstTheConfiguration) {
  load_node();
  configure("mode = \"enforce\"\n");
  auto options = node.options();
  options.observe = true;
  auto started = Daemon::start(options, node.settings(), [this] { return now; });
  ASSERT_TRUE(started);
  EXPECT_EQ((*started)->mode(), "observe");
  ASSERT_TRUE((*started)->reload());
  EXPECT_EQ((*started)->mode(), "observe");
}

TEST_F(DaemonTest, WithoutAStateDirectoryItObserves) {
  load_node();
  std::filesystem::remove_all(node.state_dir());
  configure("mode = \"enforce\"\n");
  start();
  const auto before = node.tree_bytes();
  tick();
  EXPECT_EQ(daemon->mode(), "observe");
  EXPECT_EQ(node.tree_bytes(), before);
  EXPECT_EQ(capability("undo-journal")["available"], false);
  EXPECT_NE(capability("undo-journal")["detail"].get<std::string>().find(node.state_dir().string()),
            std::string::npos)
      << capability("undo-journal");
  EXPECT_EQ(capability("decision-log")["available"], false);
  const auto set = daemon->set_mode("enforce");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind(), model::ErrorKind::unavailable);

  std::filesystem::create_directories(node.state_dir());
  ASSERT_TRUE(daemon->reload());
  EXPECT_EQ(capability("undo-journal")["available"], true);
  EXPECT_EQ(capability("decision-log")["available"], true);
  EXPECT_TRUE(daemon->set_mode("enforce"));
}

TEST_F(DaemonTest, AStateDirectoryThatIsAFileIsSaid) {
  load_node();
  std::filesystem::remove_all(node.state_dir());
  std::ofstream(node.state_dir()) << "not a directory";
  configure("mode = \"enforce\"\n");
  start();
  tick();
  EXPECT_EQ(daemon->mode(), "observe");
  EXPECT_EQ(capability("undo-journal")["available"], false);
}

TEST_F(DaemonTest, WithoutACpusetControllerItObserves) {
  load_node();
  node.put("", "cgroup.controllers", "cpu memory");
  configure("mode = \"enforce\"\n");
  start();
  tick();
  EXPECT_EQ(daemon->mode(), "observe");
  EXPECT_EQ(capability("cpuset-controller")["available"], false);
  const auto set = daemon->set_mode("enforce");
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().message().find("cpuset"), std::string::npos);
}

TEST_F(DaemonTest, ASecondDaemonOnTheSameStateIsRefused) {
  start();
  const auto second = Daemon::start(node.options(), node.settings(), [this] { return now; });
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("held by another berthd"), std::string::npos)
      << second.error().message();
}

TEST_F(DaemonTest, WithoutACgroupTreeItDoesNotStart) {
  auto options = node.options();
  options.cgroup_root = node.tree() / "nothing/here";
  const auto started = Daemon::start(options, node.settings(), [this] { return now; });
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message().find("cgroup v2"), std::string::npos) << started.error().message();
}

TEST_F(DaemonTest, SetWorkloadHoldsForTheRun) {
  load_node();
  start();
  ASSERT_TRUE(daemon->set_workload("batch/x", {{"class", "latency-sensitive"}, {"vcpus", "1"}}));
  tick();
  EXPECT_EQ(daemon->counts().latency_sensitive, 3U);
  EXPECT_EQ(daemon->workload("batch/x")->vcpus, 1U);
  node.restart_group("batch/x");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->counts().latency_sensitive == 2;
  }));
}

TEST_F(DaemonTest, SetWorkloadOutlivesAnEmptyGroupAndARestartOfTheDaemon) {
  load_node();
  start();
  ASSERT_TRUE(daemon->set_workload("batch/x", {{"class", "latency-sensitive"}, {"vcpus", "1"}}));
  node.put("batch/x", "cgroup.events", "populated 0\nfrozen 0");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->counts().latency_sensitive == 2;
  }));
  node.put("batch/x", "cgroup.events", "populated 1\nfrozen 0");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->counts().latency_sensitive == 3;
  }));
  daemon.reset();
  start();
  tick();
  EXPECT_EQ(daemon->counts().latency_sensitive, 3U);
}

TEST_F(DaemonTest, SetWorkloadRefusesUnknownOnesAndBadValues) {
  load_node();
  start();
  EXPECT_EQ(daemon->set_workload("web/none", {{"vcpus", "1"}}).error().kind(), model::ErrorKind::gone);
  EXPECT_EQ(daemon->set_workload("web/a", {{"vcpus", "-1"}}).error().kind(), model::ErrorKind::invalid_input);
  EXPECT_EQ(daemon->set_workload("web/a", {}).error().kind(), model::ErrorKind::invalid_input);
}

TEST_F(DaemonTest, AForeignWriterIsShownAsUnmanaged) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  node.put("web/a", "cpuset.cpus", "7");
  for (unsigned i = 0; i < cgroup::Sampler::kSettingsPeriod; ++i) tick();
  EXPECT_EQ(daemon->counts().unmanaged, 1U);
  const auto document = json::parse(daemon->workloads_json());
  for (const auto& workload : document["workloads"]) {
    EXPECT_EQ(workload["managed"], workload["id"] != "web/a");
    EXPECT_EQ(workload["unmanaged_reason"].is_null(), workload["id"] != "web/a");
  }
  EXPECT_FALSE(daemon->workload("web/a")->managed);
}

TEST_F(DaemonTest, AWorkloadThatAsksForTooMuchIsAFindingAndOthersArePlaced) {
  node.configure(
      std::string("mode = \"enforce\"\n[[workload]]\nmatch = \"big/*\"\nclass = \"latency-sensitive\"\n"
                  "vcpus = 64\n[[workload]]\nmatch = \"web/*\"\nclass = \"latency-sensitive\"\nvcpus = 2\n"));
  node.add_group("big/a");
  node.add_group("web/a");
  start();
  tick();
  EXPECT_EQ(node.cpus("big/a"), "");
  EXPECT_NE(node.cpus("web/a"), "");
  const auto findings = json::parse(daemon->plan_json())["findings"]["interference"];
  ASSERT_EQ(findings["unplaceable"].size(), 1U);
  EXPECT_EQ(findings["unplaceable"][0]["workload"], "big/a");
}

TEST_F(DaemonTest, AVcpuThatGoesOfflineIsVacated) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  node.set_online(4);
  now += 60;  // past the cool-down of moves
  tick();
  for (const char* id : {"web/a", "web/b"}) {
    EXPECT_TRUE(model::CpuSet::parse(node.cpus(id))->is_subset_of(model::CpuSet::range(0, 3)))
        << id << " on " << node.cpus(id);
  }
}

// Documents of docs/contract.md.

TEST_F(DaemonTest, StatusHasEveryMember) {
  load_node();
  start();
  tick();
  const auto status = json::parse(daemon->status_json());
  EXPECT_EQ(status["schema"], "berth.status/1");
  EXPECT_EQ(status["mode"], "observe");
  EXPECT_EQ(status["started"], 1000);
  EXPECT_EQ(status["tick"]["count"], 1);
  EXPECT_EQ(status["tick"]["interval_s"], 0.1);
  EXPECT_GT(status["tick"]["last_wall_ms"], 0);
  EXPECT_GT(status["tick"]["mean_cpu_ms"], 0);
  EXPECT_EQ(status["workloads"]["latency-sensitive"], 2);
  EXPECT_EQ(status["workloads"]["best-effort"], 1);
  EXPECT_EQ(status["workloads"]["unmanaged"], 0);
  EXPECT_TRUE(status["score_node"].is_number());
  EXPECT_EQ(status["undo_records"], 0);
  EXPECT_EQ(status["memory_rss_bytes"], 500 * sysconf(_SC_PAGESIZE));
  EXPECT_EQ(status["config"]["file"], node.config_file().string());
  EXPECT_EQ(status["config"]["loaded"], 1000);
  EXPECT_EQ(status["last_actions"].size(), 3U);
  for (const char* name : {"version", "host", "best_effort_cpus"}) {
    EXPECT_FALSE(status[name].get<std::string>().empty()) << name;
  }
  std::vector<std::string> names;
  for (const auto& item : status["capabilities"]) {
    names.push_back(item["name"]);
    EXPECT_TRUE(item["available"].is_boolean());
    EXPECT_FALSE(item["detail"].get<std::string>().empty()) << item["name"];
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"cgroup-v2", "cpuset-controller", "cpu-controller", "memory-controller",
                                      "psi", "pressure-triggers", "systemd", "bus", "polkit", "smt", "llc",
                                      "undo-journal", "decision-log", "privileges"}));
}

TEST_F(DaemonTest, WorkloadsHaveEveryMember) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  node.use_cpu("web/a", 1);
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->workload("web/a")->cpu_cores.value_or(0) > 0;
  }));
  const auto document = json::parse(daemon->workloads_json());
  EXPECT_EQ(document["schema"], "berth.workloads/1");
  EXPECT_EQ(document["time"], now);
  ASSERT_EQ(document["workloads"].size(), 3U);
  const auto& web = document["workloads"][1];
  EXPECT_EQ(web["id"], "web/a");
  EXPECT_EQ(web["service"], "web");
  EXPECT_EQ(web["class"], "latency-sensitive");
  EXPECT_EQ(web["vcpus"], 2);
  EXPECT_EQ(web["pinned_cpus"], node.cpus("web/a"));
  EXPECT_EQ(web["effective_cpus"], "0-7");
  EXPECT_GT(web["cpu_cores"], 0);
  EXPECT_EQ(web["memory_bytes"], 1048576);
  EXPECT_EQ(web["cpu_pressure_some_avg10"], 2.5);
  EXPECT_TRUE(web["pressure"].is_number());
  EXPECT_TRUE(web["score"].is_number());
  EXPECT_TRUE(web["progress"].is_null());
  EXPECT_EQ(web["managed"], true);
  EXPECT_TRUE(web["unmanaged_reason"].is_null());
  EXPECT_FALSE(web["matched_by"].get<std::string>().empty());
  EXPECT_TRUE(document["workloads"][0]["vcpus"].is_null());
  EXPECT_TRUE(document["workloads"][0]["score"].is_null());
}

TEST_F(DaemonTest, WhatWasSetOfARunIsShownAndCanBeTakenBack) {
  load_node();
  start();
  tick();
  const auto listed = [&] { return json::parse(daemon->workloads_json())["workloads"][1]; };
  EXPECT_EQ(listed()["overridden"], json::array());
  ASSERT_TRUE(daemon->set_workload("web/a", {{"vcpus", "3"}, {"priority", "5"}}));
  EXPECT_EQ(listed()["overridden"], (json{"priority", "vcpus"}));
  EXPECT_EQ(json::parse(daemon->status_json())["overridden_workloads"], 1);
  tick();
  EXPECT_EQ(listed()["vcpus"], 3);
  ASSERT_TRUE(daemon->set_workload("web/a", {{"vcpus", ""}, {"priority", ""}, {"class", ""}}));
  tick();
  EXPECT_EQ(listed()["overridden"], json::array());
  EXPECT_EQ(listed()["vcpus"], 2);
  EXPECT_EQ(json::parse(daemon->status_json())["overridden_workloads"], 0);
}

TEST_F(DaemonTest, AWorkloadLeftAloneKeepsTheVcpusItAskedFor) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  node.put("web/a", "cpuset.cpus", "7");
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return !daemon->workload("web/a")->managed;
  }));
  tick();
  EXPECT_EQ(json::parse(daemon->workloads_json())["workloads"][1]["vcpus"], 2);
  EXPECT_EQ(daemon->workload("web/a")->vcpus, 2U);
  EXPECT_NE(daemon->metrics_text().find("berth_workload_vcpus{workload=\"web/a\""), std::string::npos);
}

TEST_F(DaemonTest, MemoryThatCannotBeReadIsUnknownAndNot0) {
  load_node();
  std::filesystem::remove(node.tree() / "web/a/memory.current");
  start();
  tick();
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return daemon->workload("web/a")->cpu_cores.has_value();
  }));
  EXPECT_EQ(daemon->workload("web/a")->memory_bytes, std::nullopt);
  EXPECT_EQ(daemon->workload("web/b")->memory_bytes, 1048576U);
  const auto listed = json::parse(daemon->workloads_json())["workloads"];
  EXPECT_TRUE(listed[1]["memory_bytes"].is_null());
  EXPECT_EQ(listed[2]["memory_bytes"], 1048576);
  const auto snapshot = json::parse(daemon->snapshot_json())["workloads"];
  EXPECT_FALSE(snapshot[1]["usage"][0].contains("memory_bytes"));
  EXPECT_TRUE(snapshot[2]["usage"][0].contains("memory_bytes"));
  const auto metrics = daemon->metrics_text();
  EXPECT_EQ(metrics.find("berth_workload_memory_bytes{workload=\"web/a\""), std::string::npos);
  EXPECT_NE(metrics.find("berth_workload_memory_bytes{workload=\"web/b\""), std::string::npos);
}

TEST_F(DaemonTest, TopologyIsTheContractsDocument) {
  start();
  const auto topology = model::parse_topology(daemon->topology_json());
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->usable(), model::CpuSet::range(0, 7));
}

TEST_F(DaemonTest, LogIsNewestFirstAndLimited) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  ASSERT_TRUE(daemon->set_mode("observe"));
  const auto log = json::parse(daemon->log_json(2));
  EXPECT_EQ(log["schema"], "berth.log/1");
  ASSERT_EQ(log["entries"].size(), 2U);
  EXPECT_EQ(log["entries"][0]["kind"], "restore");
  const auto first = json::parse(daemon->log_json(0))["entries"].back();
  for (const char* member : {"time", "decision", "mode", "kind", "workload", "attribute", "old", "new",
                             "policy", "reason", "result", "error"}) {
    EXPECT_TRUE(first.contains(member)) << member;
  }
  EXPECT_EQ(first["decision"].get<std::string>().substr(0, 2), "d-");
}

TEST_F(DaemonTest, GroupsWhoseNamesAreNoUtf8SpoilNoDocument) {
  node.add_group("web/\xff\xfe");
  node.add_group("web/a");
  start();
  tick();
  const auto listed = json::parse(daemon->workloads_json())["workloads"];
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0]["id"], "web/a");
  EXPECT_TRUE(json::parse(daemon->log_json(0)).contains("entries"));
  EXPECT_TRUE(model::parse_snapshot(daemon->snapshot_json()));
  EXPECT_TRUE(model::parse_plan(daemon->plan_json()));
}

}  // namespace
}  // namespace berth::daemon
