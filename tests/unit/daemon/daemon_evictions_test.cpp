// SPDX-License-Identifier: Apache-2.0
// The daemon ends workloads: by hand, and by the plan.
#include "tests/unit/cgroup/child.h"
#include "tests/unit/daemon/daemon_fixture.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using cgroup::test::Child;
using model::ErrorKind;
using nlohmann::json;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

class DaemonEvictionsTest : public test::DaemonFixture {
 protected:
  void add_running(const std::string& id, const Child& child, std::uint64_t bytes = kGiB) {
    node.add_group(id);
    node.put(id, "memory.current", std::to_string(bytes));
    node.put(id, "cgroup.procs", std::to_string(child.pid()));
    node.put(id, "cgroup.kill", "");
  }
  void have_memory(std::uint64_t total, std::uint64_t available) {
    std::ofstream(node.proc() / "meminfo")
        << fmt::format("MemTotal: {} kB\nMemAvailable: {} kB\n", total / 1024, available / 1024);
  }
  void empty_group(const std::string& id) {
    node.put(id, "cgroup.events", "populated 0\nfrozen 0");
    node.put(id, "cgroup.procs", "");
  }
  // Steps of evictions, oldest first, as "WORKLOAD STEP RESULT".
  std::vector<std::string> steps() {
    std::vector<std::string> list;
    const auto entries = json::parse(daemon->control().log_json(0))["entries"];
    for (const auto& entry : entries) {
      if (entry["kind"] != "evict") continue;
      list.insert(list.begin(),
                  fmt::format("{} {} {}", entry["workload"].get<std::string>(),
                              entry["attribute"].get<std::string>(), entry["result"].get<std::string>()));
    }
    return list;
  }
  static bool dies(Child& child) {
    return test::eventually([&] { return child.died_of() != 0; });
  }
  bool ticks_until_dead(Child& child) {
    return test::eventually([&] {
      tick();
      return child.died_of() != 0;
    });
  }
  using Steps = std::vector<std::string>;
};

TEST_F(DaemonEvictionsTest, ByHandAWorkloadIsAskedToEnd) {
  Child child;
  add_running("batch/x", child);
  configure("mode = \"enforce\"\n");
  start();
  tick();
  const auto decision = daemon->control().evict("batch/x");
  ASSERT_TRUE(decision) << decision.error().message();
  EXPECT_TRUE(decision->starts_with("d-"));
  EXPECT_TRUE(dies(child));
  EXPECT_EQ(child.died_of(), SIGTERM);
  EXPECT_EQ(json::parse(daemon->control().status_json())["evictions"]["under_way"], 1);
  empty_group("batch/x");
  tick();
  EXPECT_EQ(steps(), (Steps{"batch/x terminate applied", "batch/x end applied"}));
  // Schedulers of many hosts read it.
  std::ifstream state_file(node.runtime_dir() / "state.json");
  const json departures = json::parse(state_file)["departures"];
  ASSERT_EQ(departures.size(), 1U);
  EXPECT_EQ(departures[0]["kind"], "evict");
  EXPECT_EQ(departures[0]["workload"], "batch/x");
  EXPECT_EQ(departures[0]["decision"], *decision);
  EXPECT_EQ(departures[0]["time"], 1001);
  EXPECT_TRUE(daemon->control().explain_json(*decision));
  EXPECT_NE(daemon->control().metrics_text().find("berth_evictions_total{step=\"terminate\"} 1"),
            std::string::npos);
}

TEST_F(DaemonEvictionsTest, ByHandItIsRefusedWhereItMustNotBe) {
  Child child;
  Child serving;
  add_running("batch/x", child);
  add_running("web/a", serving);
  configure("");
  start();
  tick();
  const auto in_observe = daemon->control().evict("batch/x");
  ASSERT_FALSE(in_observe);
  EXPECT_EQ(in_observe.error().kind(), ErrorKind::refused);
  EXPECT_NE(in_observe.error().message().find("observe"), std::string::npos);
  ASSERT_TRUE(daemon->set_mode("enforce"));
  tick();
  EXPECT_EQ(daemon->control().evict("web/a").error().kind(), ErrorKind::refused);
  EXPECT_EQ(daemon->control().evict("batch/none").error().kind(), ErrorKind::gone);
  EXPECT_EQ(child.died_of(), 0);
  EXPECT_EQ(serving.died_of(), 0);
  EXPECT_EQ(steps(), Steps{});
}

TEST_F(DaemonEvictionsTest, AnOperatorsClassCounts) {
  Child serving;
  add_running("web/a", serving);
  configure("mode = \"enforce\"\n");
  start();
  tick();
  ASSERT_TRUE(daemon->control().set_workload("web/a", {{"class", "best-effort"}}));
  EXPECT_TRUE(daemon->control().evict("web/a"));
  EXPECT_TRUE(dies(serving));
}

TEST_F(DaemonEvictionsTest, NobodyIsEvictedUnlessTheConfigurationSaysSo) {
  Child child;
  add_running("batch/x", child);
  have_memory(16 * kGiB, 0);
  configure("mode = \"enforce\"\n");
  start();
  for (int i = 0; i < 3; ++i) tick();
  EXPECT_EQ(steps(), Steps{});
  EXPECT_EQ(child.died_of(), 0);
}

TEST_F(DaemonEvictionsTest, WhatThePlanEvictsEndsOneAfterTheOther) {
  Child dear;
  Child cheap;
  Child serving;
  add_running("batch/dear", dear);
  add_running("batch/cheap", cheap);
  add_running("web/a", serving);
  node.use_cpu("batch/dear", 100);
  have_memory(16 * kGiB, 0);  // 0.8 GiB missing: one of them is enough
  configure("mode = \"enforce\"\n[eviction]\nevict = true\ngrace = 60\n");
  start();
  ASSERT_TRUE(ticks_until_dead(cheap));
  for (int i = 0; i < 3; ++i) tick();
  EXPECT_EQ(steps(), (Steps{"batch/cheap terminate applied"})) << "its memory counts as free already";
  EXPECT_TRUE(json::parse(daemon->control().snapshot_json())["workloads"][0].contains("evicted_at"));
  empty_group("batch/cheap");
  ASSERT_TRUE(ticks_until_dead(dear)) << "what the first brought was not enough";
  EXPECT_EQ(steps(), (Steps{"batch/cheap terminate applied", "batch/cheap end applied",
                            "batch/dear terminate applied"}));
  EXPECT_EQ(serving.died_of(), 0);
}

TEST_F(DaemonEvictionsTest, AVictimThatIsStartedAgainGoesAgainOnceItIsNoLongerSparedAndNobodyElse) {
  Child dear;
  add_running("batch/dear", dear);
  node.use_cpu("batch/dear", 100);
  configure("mode = \"enforce\"\n[eviction]\nevict = true\ngrace = 60\n");
  for (int times = 1; times <= 2; ++times) {
    Child cheap;
    add_running("batch/cheap", cheap);
    have_memory(16 * kGiB, 8 * kGiB);
    if (!daemon) start();
    for (int i = 0; i < 61; ++i) tick();
    EXPECT_EQ(cheap.died_of(), 0);
    have_memory(16 * kGiB, 0);
    ASSERT_TRUE(ticks_until_dead(cheap));
    have_memory(16 * kGiB, 8 * kGiB);
    empty_group("batch/cheap");
    tick();
    EXPECT_EQ(std::ssize(steps()), 2 * times);
    node.remove_group("batch/cheap");
    tick();
  }
  EXPECT_EQ(steps(), (Steps{"batch/cheap terminate applied", "batch/cheap end applied",
                            "batch/cheap terminate applied", "batch/cheap end applied"}));
  EXPECT_EQ(dear.died_of(), 0);
}

TEST_F(DaemonEvictionsTest, ObservingSaysOnceWhomItWouldEvict) {
  Child child;
  add_running("batch/x", child);
  have_memory(16 * kGiB, 0);
  configure("[eviction]\nevict = true\n");
  start();
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return !steps().empty();
  }));
  for (int i = 0; i < 4; ++i) tick();
  EXPECT_EQ(steps(), (Steps{"batch/x terminate observed"}));
  EXPECT_EQ(child.died_of(), 0);
}

TEST_F(DaemonEvictionsTest, GoingBackToObserveStopsTheLadder) {
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  add_running("batch/x", child);
  configure("mode = \"enforce\"\n[eviction]\ngrace = 0\n");
  start();
  tick();
  ASSERT_TRUE(daemon->control().evict("batch/x"));
  ASSERT_TRUE(daemon->set_mode("observe"));
  for (int i = 0; i < 3; ++i) tick();
  EXPECT_EQ(node.get("batch/x", "cgroup.kill"), "");
  EXPECT_EQ(steps(), (Steps{"batch/x terminate applied", "batch/x kill left"}));
}

TEST_F(DaemonEvictionsTest, WhoDoesNotHeedIsKilled) {
  Child child([] { std::signal(SIGTERM, SIG_IGN); });
  add_running("batch/x", child);
  configure("mode = \"enforce\"\n[eviction]\ngrace = 0\n");
  start();
  tick();
  ASSERT_TRUE(daemon->control().evict("batch/x"));
  tick();
  EXPECT_EQ(node.get("batch/x", "cgroup.kill"), "1");
  child.kill_and_reap();
  empty_group("batch/x");
  tick();
  EXPECT_EQ(steps(), (Steps{"batch/x terminate applied", "batch/x kill applied", "batch/x end applied"}));
}

}  // namespace
}  // namespace berth::daemon
