// SPDX-License-Identifier: Apache-2.0
// Workloads that appear between two ticks.
#include "daemon/arrivals.h"
#include "model/json.h"
#include "tests/unit/daemon/daemon_fixture.h"

#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using nlohmann::json;

int placements(Arrivals& arrivals, bool by_user, double now_s, int tries = 100) {
  int taken = 0;
  for (int i = 0; i < tries; ++i) {
    taken += arrivals.add(by_user, now_s, 1) ? 1 : 0;
    arrivals.clear();
  }
  return taken;
}

TEST(Arrivals, ThoseThatComeTogetherArePlacedTogether) {
  Arrivals arrivals;
  EXPECT_TRUE(arrivals.add(false, 10, 1));
  for (int container = 1; container < 5; ++container) EXPECT_FALSE(arrivals.add(false, 10.001, 1));
  EXPECT_TRUE(arrivals.is_due());
  arrivals.clear();
  EXPECT_FALSE(arrivals.is_due());
  EXPECT_EQ(placements(arrivals, false, 10.01), Arrivals::kMost - 1) << "the five took one of the allowance";
}

TEST(Arrivals, WithoutEndGetOnePlacementAnInterval) {
  Arrivals arrivals;
  EXPECT_EQ(placements(arrivals, false, 1000), Arrivals::kMost);
  EXPECT_EQ(placements(arrivals, false, 1000.9), 0);
  EXPECT_EQ(placements(arrivals, false, 1001), 1);
  EXPECT_EQ(placements(arrivals, false, 1003), 2);
  EXPECT_EQ(placements(arrivals, false, 2000), Arrivals::kMost) << "an allowance does not grow without end";
}

TEST(Arrivals, OfUsersTakeNothingFromRoot) {
  Arrivals arrivals;
  EXPECT_EQ(placements(arrivals, true, 1000), Arrivals::kMost);
  EXPECT_EQ(placements(arrivals, false, 1000), Arrivals::kMost);
}

class DaemonArrivalsTest : public test::DaemonFixture {
 protected:
  void begin(const std::string& head) {
    load_node();
    configure(head);
    start();
    daemon->watch_arrivals([this](double in_s) {
      EXPECT_EQ(in_s, Arrivals::kGather_s);
      ++woken;
    });
    tick();
  }
  json status() { return json::parse(daemon->control().status_json()); }
  model::Snapshot snapshot() { return model::parse_snapshot(daemon->control().snapshot_json())->snapshot; }
  model::Workload workload(const std::string& id) {
    const auto all = snapshot();
    const auto* found = find_workload(all, id);
    return found != nullptr ? *found : model::Workload();
  }

  int woken = 0;
};

TEST_F(DaemonArrivalsTest, AMatchedWorkloadIsPinnedBeforeTheNextTick) {
  begin("mode = \"enforce\"\n");
  EXPECT_EQ(woken, 0) << "the tick has placed the first ones";
  node.add_group("web/c");
  daemon->take_changes();
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(node.cpus("web/c"), "");
  const std::string others = node.cpus("web/a") + " " + node.cpus("web/b");
  daemon->place();
  const auto pin = model::CpuSet::parse(node.cpus("web/c"));
  ASSERT_TRUE(pin);
  EXPECT_EQ(pin->size(), 2U);
  EXPECT_FALSE(pin->intersects(*model::CpuSet::parse(node.cpus("batch/x")))) << "it owns them";
  EXPECT_EQ(node.cpus("web/a") + " " + node.cpus("web/b"), others);
  EXPECT_EQ(status()["placement"]["count"], 1);
  EXPECT_EQ(status()["tick"]["woken_by_pressure"], 0);
}

// A loop that only places looks as dead as it is, and a cheap placement makes no tick look cheaper.
TEST_F(DaemonArrivalsTest, APlacementIsNoTick) {
  begin("mode = \"enforce\"\n");
  const json before = status();
  EXPECT_EQ(before["tick"]["count"], 1);
  EXPECT_EQ(before["placement"]["count"], 0);
  node.add_group("web/c");
  daemon->take_changes();
  daemon->place();
  const json after = status();
  EXPECT_EQ(after["tick"], before["tick"]);
  EXPECT_EQ(after["placement"]["count"], 1);
  EXPECT_GT(after["placement"]["last_wall_ms"], 0);
}

TEST_F(DaemonArrivalsTest, WorkThatComesBeforeEachTickStopsNoLearning) {
  begin("mode = \"enforce\"\n");
  int ticks = 0;
  // Readings that follow each other at once make no sample, so the number of ticks is not known.
  EXPECT_TRUE(test::eventually([&] {
    ++ticks;
    node.use_cpu("web/a", 0.0001 * ticks);
    node.use_cpu("web/b", 0.0002 * ticks);
    node.add_group("batch/new-" + std::to_string(ticks));
    daemon->take_changes();
    daemon->place();
    tick();
    const json profiles = json::parse(daemon->control().profiles_json())["profiles"];
    return !profiles.empty() && profiles[0]["rows"]["n"].get<double>() >= 4;
  }));
  EXPECT_EQ(status()["placement"]["count"], ticks);
}

TEST_F(DaemonArrivalsTest, ACgroupThatNoRuleMatchesWakesNothing) {
  begin("mode = \"enforce\"\n");
  node.add_group("other/x");
  node.remove_group("batch/x");
  daemon->take_changes();
  EXPECT_EQ(woken, 0);
  daemon->place();
  EXPECT_EQ(status()["placement"]["count"], 0);
}

TEST_F(DaemonArrivalsTest, OneThatIsGoneAgainChangesNoPlan) {
  begin("mode = \"enforce\"\n");
  now = now + 0.5;
  const auto plan = daemon->control().plan_json();
  ASSERT_FALSE(json::parse(plan)["actions"].empty());
  node.add_group("web/c");
  daemon->take_changes();
  node.remove_group("web/c");
  daemon->place();
  EXPECT_EQ(daemon->control().plan_json(), plan);
  EXPECT_EQ(status()["placement"]["count"], 0);
}

TEST_F(DaemonArrivalsTest, AnEmptyCgroupWakesNothingUntilItsFirstProcess) {
  begin("mode = \"enforce\"\n");
  node.add_group("web/c");
  node.put("web/c", "cgroup.events", "populated 0\nfrozen 0");
  daemon->take_changes();
  EXPECT_EQ(woken, 0);
  node.put("web/c", "cgroup.events", "populated 1\nfrozen 0");
  daemon->take_changes();
  EXPECT_EQ(woken, 1);
}

TEST_F(DaemonArrivalsTest, ThoseThatComeTogetherArePlacedTogether) {
  begin("mode = \"enforce\"\n");
  for (const char* id : {"web/c", "batch/y", "batch/z"}) {
    node.add_group(id);
    daemon->take_changes();
  }
  EXPECT_EQ(woken, 1);
  daemon->place();
  EXPECT_EQ(node.cpus("batch/y"), node.cpus("batch/x"));
  EXPECT_EQ(node.cpus("batch/z"), node.cpus("batch/x"));
  EXPECT_NE(node.cpus("web/c"), "");
  daemon->place();
  EXPECT_EQ(status()["placement"]["count"], 1) << "nothing is left to place";
}

TEST_F(DaemonArrivalsTest, ATickInBetweenLeavesNothingToPlace) {
  begin("mode = \"enforce\"\n");
  node.add_group("web/c");
  daemon->take_changes();
  tick();
  EXPECT_NE(node.cpus("web/c"), "");
  daemon->place();
  EXPECT_EQ(status()["placement"]["count"], 0);
}

TEST_F(DaemonArrivalsTest, AfterAChangeOfTheModeTheNextTickPlaces) {
  begin("");
  ASSERT_TRUE(daemon->set_mode("enforce"));
  node.add_group("web/c");
  daemon->take_changes();
  daemon->place();
  EXPECT_EQ(node.cpus("web/c"), "") << "the readings are of observe mode";
  tick();
  EXPECT_NE(node.cpus("web/c"), "");
}

TEST_F(DaemonArrivalsTest, ObserveTellsThePinAndWritesNothing) {
  begin("");
  now = now + 0.5;
  node.add_group("web/c");
  const auto bytes = node.tree_bytes();
  daemon->take_changes();
  daemon->place();
  EXPECT_EQ(node.tree_bytes(), bytes);
  const auto log = json::parse(daemon->control().log_json(0))["entries"];
  ASSERT_EQ(log.size(), 5U);
  std::set<std::string> told;
  for (const auto& entry : log) {
    if (entry["time"].get<double>() == now.load()) told.insert(entry["workload"]);
  }
  EXPECT_EQ(told, (std::set<std::string>{"batch/x", "web/c"})) << "at the time of the placement";
  EXPECT_EQ(workload("web/c").id, "web/c");
  EXPECT_TRUE(workload("web/c").cpus.empty()) << "callers see what really holds";
  const auto entries = log.size();
  tick();
  EXPECT_EQ(json::parse(daemon->control().log_json(0))["entries"].size(), entries) << "it is told once";
}

// What is measured between two ticks goes on as if the placement had not been.
TEST_F(DaemonArrivalsTest, NoReadingIsTaken) {
  begin("mode = \"enforce\"\n");
  node.use_cpu("web/a", 1e-6);  // little, however close the ticks are
  tick();
  const auto before = workload("web/a");
  ASSERT_EQ(before.usage.size(), 1U);
  const double time = snapshot().time;
  node.use_cpu("web/a", 2e-6);
  now = now + 0.5;
  node.add_group("web/c");
  daemon->take_changes();
  daemon->place();
  EXPECT_EQ(workload("web/a").usage.size(), 1U);
  EXPECT_EQ(workload("web/a").usage.back().cpu_cores, before.usage.back().cpu_cores);
  EXPECT_EQ(snapshot().time, time);
  EXPECT_NE(node.cpus("web/c"), "");
  EXPECT_TRUE(workload("web/c").usage.empty());
  tick();
  EXPECT_EQ(workload("web/a").usage.size(), 2U);
  EXPECT_TRUE(workload("web/c").usage.empty()) << "its first rate needs two ticks, as without a placement";
}

}  // namespace
}  // namespace berth::daemon
