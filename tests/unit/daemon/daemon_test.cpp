// SPDX-License-Identifier: Apache-2.0
// The wheel: observing, deciding, enforcing and putting back, tick by tick.
#include "model/json.h"
#include "policies/decide.h"
#include "tests/unit/daemon/daemon_fixture.h"

#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using DaemonTest = test::DaemonFixture;
using nlohmann::json;

TEST_F(DaemonTest, ObserveWritesNothingAndLogsWhatItWouldDo) {
  load_node();
  start();
  const auto before = node.tree_bytes();
  for (int i = 0; i < 20; ++i) {
    node.use_cpu("web/a", i * 1e-6);  // little, however close the ticks are
    tick();
  }
  node.use_cpu("web/a", 0);
  EXPECT_EQ(node.tree_bytes(), before);
  const auto log = json::parse(daemon->control().log_json(0))["entries"];
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
  const auto snapshot = model::parse_snapshot(daemon->control().snapshot_json());
  ASSERT_TRUE(snapshot);
  for (const auto& workload : snapshot->snapshot.workloads) EXPECT_TRUE(workload.cpus.empty());
  const auto plan = model::parse_plan(daemon->control().plan_json());
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
    return daemon->control().counts().latency_sensitive == 3;
  }));
  // The new one is placed, and the pool of the best-effort one shrinks.
  const auto log = json::parse(daemon->control().log_json(2))["entries"];
  std::set<std::string> changed;
  for (const auto& entry : log) changed.insert(entry["workload"]);
  EXPECT_EQ(changed, (std::set<std::string>{"batch/x", "web/c"}));
  node.restart_group("web/c");
  const auto before = json::parse(daemon->control().log_json(0))["entries"].size();
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return json::parse(daemon->control().log_json(0))["entries"].size() > before;
  })) << "the next run has to be placed again";
  EXPECT_EQ(json::parse(daemon->control().log_json(1))["entries"][0]["workload"], "web/c");
}

TEST_F(DaemonTest, EnforcePinsAsThePlanOfTheSameSnapshotSays) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  const auto plan = model::parse_plan(daemon->control().plan_json());
  ASSERT_TRUE(plan);
  ASSERT_FALSE(plan->actions.empty());
  for (const auto& action : plan->actions) {
    const auto& cpus = *action.sets<model::CpuSet>();
    EXPECT_EQ(node.cpus(*action.workload()), cpus.to_string());
  }
  const auto snapshot = model::parse_snapshot(daemon->control().snapshot_json());
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
  EXPECT_EQ(daemon->control().mode(), "enforce");
  tick();
  EXPECT_NE(node.cpus("web/a"), "");
  EXPECT_EQ(json::parse(daemon->control().status_json())["undo_records"], 3);
  ASSERT_TRUE(daemon->set_mode("observe"));
  EXPECT_EQ(daemon->control().mode(), "observe");
  EXPECT_EQ(node.cpus("web/a"), "");
  EXPECT_EQ(node.cpus("batch/x"), "0-7");
  EXPECT_EQ(json::parse(daemon->control().status_json())["undo_records"], 0);
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
  EXPECT_EQ(daemon->control().mode(), "observe");
  tick();
  EXPECT_EQ(node.cpus("web/a"), "");
  EXPECT_EQ(node.cpus("web/b"), "7");
}

TEST_F(DaemonTest, AWorkloadThatAsksForTooMuchIsAFindingAndOthersArePlaced) {
  node.configure(
      std::string("mode = \"enforce\"\ninterference.isolation = \"vcpus\"\n[[workload]]\nmatch = "
                  "\"big/*\"\nclass = \"latency-sensitive\"\n"
                  "vcpus = 64\n[[workload]]\nmatch = \"web/*\"\nclass = \"latency-sensitive\"\nvcpus = 2\n"));
  node.add_group("big/a");
  node.add_group("web/a");
  start();
  tick();
  EXPECT_EQ(node.cpus("big/a"), "2-7") << "off the vCPUs of the other one";
  EXPECT_NE(node.cpus("web/a"), "");
  const auto findings = json::parse(daemon->control().plan_json())["findings"]["interference"];
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

}  // namespace
}  // namespace berth::daemon
