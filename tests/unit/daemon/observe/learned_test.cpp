// SPDX-License-Identifier: Apache-2.0
// Figures learned of a node outlive the daemon, as far as their workloads are still there.
#include "daemon/observe/past_demand.h"
#include "daemon/observe/past_usage.h"
#include "daemon/observe/used_shares.h"
#include "tests/unit/daemon/daemon_fixture.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using nlohmann::json;

model::Plan found(double time, std::optional<double> cpu, std::optional<double> memory) {
  model::Plan plan;
  plan.time = time;
  auto& oversell = plan.findings.oversell.emplace();
  oversell.cpu.used_share = cpu;
  oversell.memory.used_share = memory;
  return plan;
}

class LearnedTest : public testing::Test {
 protected:
  UsedShares open(double now, const std::string& boot = "boot-1") {
    warning.reset();
    return {node.state_dir(), test::fake_clock([now] { return now; }), boot, warning};
  }
  test::FakeNode node;
  std::optional<std::string> warning;
};

class PastUsageTest : public LearnedTest {
 protected:
  PastUsageTest() {
    snapshot.workloads.resize(1);
    snapshot.workloads[0].id = "web/\"a\"";
    model::UsageSample sample;
    sample.time = 990;
    sample.cpu_cores = 1.25;
    sample.memory_bytes = 4096;
    sample.runq_latency_us = 12.5F;
    model::UsageSample next;
    next.time = 995;
    next.cpu_cores = 0.1;
    snapshot.workloads[0].usage = {sample, next};
  }
  auto save() {
    return save_usage(node.state_dir(), "boot-1", test::fake_clock([] { return 1000.0; }), snapshot,
                      [](const std::string&) { return 7U; });
  }
  std::map<std::string, PastUsage> take(const std::string& boot, double now = 1000) {
    warning.reset();
    return take_usage(node.state_dir(), boot, test::fake_clock([now] { return now; }), warning);
  }
  model::Snapshot snapshot;
};

class RestartTest : public test::DaemonFixture {};

}  // namespace

TEST_F(LearnedTest, KeepsTheHighestMinuteOfCpuAndTheHighestReadingOfMemory) {
  auto shares = open(0);
  shares.take(found(0, 0.2, 0.5));
  shares.take(found(30, 0.4, 0.9));
  EXPECT_TRUE(shares.all().empty());  // the minute is not over
  EXPECT_TRUE(shares.take(found(60, 0.1, 0.1)));
  ASSERT_EQ(shares.all().size(), 1U);
  EXPECT_EQ(shares.all()[0].time, 0);
  EXPECT_NEAR(shares.all()[0].cpu, 0.3, 1e-12);
  EXPECT_NEAR(shares.all()[0].memory, 0.9, 1e-12);
  EXPECT_FALSE(shares.take(found(120, 0.5, 0.1)));
  EXPECT_NEAR(shares.all()[0].cpu, 0.3, 1e-12);
  shares.take(found(301, 0, 0));
  EXPECT_TRUE(shares.take(found(400, 0, 0)));
  ASSERT_EQ(shares.all().size(), 2U);
  EXPECT_EQ(shares.all()[1].time, 300);
}

TEST_F(LearnedTest, LeavesOutWhatIsNotKnown) {
  auto shares = open(0);
  shares.take(found(0, std::nullopt, 0.5));
  shares.take({});
  shares.take(found(60, 0.5, 0.5));
  EXPECT_TRUE(shares.all().empty());
}

TEST_F(LearnedTest, ForgetsWhatIsOlderThanADay) {
  auto shares = open(0);
  for (double time = 0; time < 3 * 86400; time += 60) shares.take(found(time, 0.5, 0.5));
  EXPECT_LE(shares.all().size(), 290U);
  EXPECT_GE(shares.all().size(), 288U);
}

TEST_F(LearnedTest, OutlivesTheDaemon) {
  auto shares = open(0);
  for (double time = 0; time < 1000; time += 60) shares.take(found(time, 0.25, 0.75));
  ASSERT_TRUE(shares.save());
  EXPECT_EQ(open(1000).all(), shares.all());
  EXPECT_EQ(warning, std::nullopt);
  EXPECT_TRUE(open(1e6).all().empty());
}

TEST_F(LearnedTest, OfThisBootHaveTheirAgeWhateverTheWallClockIsSetTo) {
  for (const double step : {-28800.0, -3600.0, 3600.0, 28800.0}) {
    double boot = 0;
    double wall = 1e6;
    const auto clock = [&] {
      return os::Clock({.boot = [&] { return boot; }, .wall = [&] { return wall; }});
    };
    const os::Clock first = clock();
    UsedShares shares(node.state_dir(), first, "boot-1", warning);
    for (; boot < 3000; boot += 60, wall += 60) shares.take(found(first.now(), 0.25, 0.75));
    shares.take(found(first.now(), 0.25, 0.75));
    const auto before = shares.all();
    wall += step;
    boot += 60;
    wall += 60;
    shares.take(found(first.now(), 0.25, 0.75));
    EXPECT_EQ(shares.all(), before);
    ASSERT_TRUE(shares.save());
    const os::Clock second = clock();
    UsedShares again(node.state_dir(), second, "boot-1", warning);
    ASSERT_EQ(again.all().size(), before.size());
    for (std::size_t i = 0; i < before.size(); ++i)
      EXPECT_NEAR(second.now() - again.all()[i].time, first.now() - before[i].time, 0.01) << step;
    std::filesystem::remove(node.state_dir() / "used_shares.json");
  }
}

TEST_F(LearnedTest, OfAnEarlierBootComeBackOnceTheWallClockIsRight) {
  auto shares = open(1e9);
  for (double time = 1e9; time < 1e9 + 3000; time += 60) shares.take(found(time, 0.25, 0.75));
  const auto before = shares.all();
  ASSERT_TRUE(shares.save());
  // The host boots with a clock that is wrong by years. berthd learns, saves, and NTP corrects the clock.
  double boot = 5;
  double wall = 1e9 - 1e8;
  const os::Clock clock({.boot = [&] { return boot; }, .wall = [&] { return wall; }});
  UsedShares again(node.state_dir(), clock, "boot-2", warning);
  EXPECT_TRUE(again.all().empty());
  for (; boot < 905; boot += 60, wall += 60) again.take(found(clock.now(), 0.5, 0.5));
  const std::size_t own = again.all().size();
  EXPECT_GE(own, 3U);
  ASSERT_TRUE(again.save());
  wall = 1e9 + 7000;
  again.take(found(clock.now() + 60, 0.5, 0.5));
  ASSERT_EQ(again.all().size(), before.size() + own);
  EXPECT_NEAR(clock.now() - again.all()[0].time, 7100, 1) << "it began 100 s before";
  ASSERT_TRUE(again.save());
  EXPECT_EQ(open(1e9 + 7100, "boot-3").all().size(), before.size() + own);
  // A day later they are old, whatever the clock shows.
  boot += 90000;
  again.take(found(clock.now(), 0.5, 0.5));
  EXPECT_TRUE(again.all().empty());
}

TEST_F(LearnedTest, AreSavedInTheBackgroundToo) {
  std::vector<model::UsedShare> known;
  {
    auto shares = open(0);
    for (double time = 0; time < 1000; time += 60) shares.take(found(time, 0.25, 0.75));
    EXPECT_TRUE(shares.save_in_background());
    EXPECT_TRUE(shares.save_in_background());
    known = shares.all();
  }  // waits for it
  EXPECT_EQ(open(1000).all(), known);
  std::filesystem::remove_all(node.state_dir());
  auto shares = open(0);
  EXPECT_TRUE(shares.save_in_background()) << "what comes of it is not known yet";
  EXPECT_TRUE(test::eventually([&] { return !shares.save_in_background(); })) << "but the next time it is";
}

TEST_F(LearnedTest, ADamagedFileIsAsGoodAsNone) {
  for (const std::string& text :
       {std::string("{"), std::string("[]"), std::string(R"({"schema": "other/1", "shares": []})"),
        std::string(R"({"schema": "berth.used-shares/1", "shares": [[1]]})"), std::string(300000, ' ')}) {
    std::ofstream(node.state_dir() / "used_shares.json") << text;
    EXPECT_TRUE(open(1000).all().empty());
    EXPECT_NE(warning.value_or("").find("used_shares.json"), std::string::npos) << text.substr(0, 80);
  }
  std::ofstream(node.state_dir() / "used_shares.json") << R"({"schema": "berth.used-shares/1",
      "shares": [[300, 0.5, 0.5], [0, 0.5, 0.5], [600, -1, 0], [900, 1, 1]]})";
  EXPECT_EQ(open(1000).all().size(), 3U);
}

TEST_F(PastUsageTest, ComesBackAsItWasOnce) {
  ASSERT_TRUE(save());
  const auto past = take("boot-1");
  ASSERT_EQ(past.size(), 1U);
  EXPECT_EQ(past.begin()->first, snapshot.workloads[0].id);
  EXPECT_EQ(past.begin()->second.cgroup_id, 7U);
  EXPECT_EQ(past.begin()->second.usage, snapshot.workloads[0].usage);
  EXPECT_TRUE(take("boot-1").empty());
  EXPECT_EQ(warning, std::nullopt);
}

TEST_F(PastUsageTest, IsVoidAfterAnotherBootAndAfterAWhile) {
  ASSERT_TRUE(save());
  EXPECT_TRUE(take("boot-2").empty());
  ASSERT_TRUE(save());
  EXPECT_TRUE(take("boot-1", 5000).empty());
  EXPECT_EQ(warning, std::nullopt);
}

TEST_F(PastUsageTest, HasItsAgeAfterTheWallClockWasSet) {
  for (const double step : {-28800.0, -300.0, 28800.0}) {
    ASSERT_TRUE(save());
    const os::Clock clock({.boot = [] { return 1000.0; }, .wall = [step] { return 1000 + step; }});
    const auto past = take_usage(node.state_dir(), "boot-1", clock, warning);
    ASSERT_EQ(past.size(), 1U) << step;
    EXPECT_EQ(clock.now() - past.begin()->second.usage.back().time, 5);
  }
}

TEST_F(PastUsageTest, ADamagedFileIsAsGoodAsNone) {
  for (const char* text : {"{", "[]", R"({"schema": "berth.usage/2"})",
                           R"({"schema": "berth.usage/2", "boot": "boot-1", "workloads": {"a": 7}})"}) {
    std::ofstream(node.state_dir() / "usage.json") << text;
    EXPECT_TRUE(take("boot-1").empty()) << text;
    EXPECT_NE(warning.value_or("").find("usage.json"), std::string::npos) << text;
  }
}

class PastDemandTest : public LearnedTest {
 protected:
  PastDemandTest() {
    snapshot.memory_readings = {{380, 1}, {990, 4096}, {995, 9007199254740992}};
    snapshot.eviction_durations_s = {12.5, 3};
  }
  auto save() {
    return save_demand(node.state_dir(), "boot-1", test::fake_clock([] { return 1000.0; }), snapshot);
  }
  PastDemand take(const std::string& boot, double now = 1000) {
    warning.reset();
    return take_demand(node.state_dir(), boot, test::fake_clock([now] { return now; }), warning);
  }
  model::Snapshot snapshot;
};

TEST_F(PastDemandTest, IsReadOnce) {
  ASSERT_TRUE(save());
  const auto past = take("boot-1");
  EXPECT_EQ(past.readings, (std::vector<model::MemoryReading>{{990, 4096}, {995, 9007199254740992}}))
      << "those of the last ten minutes";
  EXPECT_EQ(past.durations_s, (std::vector<double>{12.5, 3}));
  EXPECT_EQ(warning, std::nullopt);
  EXPECT_TRUE(take("boot-1").durations_s.empty());
  EXPECT_EQ(warning, std::nullopt);
}

TEST_F(PastDemandTest, KeepsDurationsOverABoot) {
  for (const char* boot : {"boot-2", ""}) {
    ASSERT_TRUE(save());
    const auto past = take(boot);
    EXPECT_TRUE(past.readings.empty()) << boot;
    EXPECT_EQ(past.durations_s.size(), 2U) << boot;
  }
}

TEST_F(PastDemandTest, HasItsAgeAfterTheWallClockWasSet) {
  for (const double step : {-28800.0, 28800.0}) {
    ASSERT_TRUE(save());
    const os::Clock clock({.boot = [] { return 1000.0; }, .wall = [step] { return 1000 + step; }});
    const auto past = take_demand(node.state_dir(), "boot-1", clock, warning);
    // A clock before 1970 has no time for a reading.
    if (step < 0) continue;
    ASSERT_EQ(past.readings.size(), 2U) << step;
    EXPECT_EQ(clock.now() - past.readings.back().time, 5);
  }
}

TEST_F(PastDemandTest, ADamagedFileIsAsGoodAsNone) {
  const std::string begin = R"({"schema": "berth.demand/1", "boot": "boot-1", )";
  for (const std::string& text : {std::string("{"), std::string("[]"), begin + R"("readings": []})",
                                  begin + R"("readings": [[990]], "eviction_durations": [7]})",
                                  begin + R"("readings": [], "eviction_durations": ["7"]})"}) {
    std::ofstream(node.state_dir() / "demand.json") << text;
    EXPECT_TRUE(take("boot-1").durations_s.empty()) << text;
    EXPECT_NE(warning.value_or("").find("demand.json"), std::string::npos) << text;
  }
  std::ofstream(node.state_dir() / "demand.json")
      << begin << R"("readings": [[990, -1], [991, 1e300], [1001, 1], [992, 7], [992, 8]], )"
      << R"("eviction_durations": [-1, 1e300, 4]})";
  const auto past = take("boot-1");
  EXPECT_EQ(past.readings, (std::vector<model::MemoryReading>{{992, 7}}));
  EXPECT_EQ(past.durations_s, (std::vector<double>{4}));
}

TEST_F(RestartTest, TheServicesDemandGoesOn) {
  load_node();
  start();
  const auto readings = [&] {
    return json::parse(daemon->control().snapshot_json()).value("memory_readings", json::array());
  };
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return readings().size() >= 2;
  }));
  const auto before = readings();
  daemon->stop();
  daemon.reset();
  start();
  tick();
  const auto after = readings();
  ASSERT_GE(after.size(), before.size());
  EXPECT_EQ(after[0][1], before[0][1]);
}

TEST_F(RestartTest, SamplesOfARunThatGoesOnAreThereAtOnce) {
  load_node();
  start();
  const auto usage_of = [&](const std::string& id) {
    const auto snapshot = json::parse(daemon->control().snapshot_json());
    for (const auto& workload : snapshot["workloads"]) {
      if (workload["id"] == id) return workload["usage"].size();
    }
    return std::size_t{0};
  };
  // Readings that follow each other too closely make no sample.
  ASSERT_TRUE(test::eventually([&] {
    tick();
    return usage_of("web/a") >= 3;
  }));
  const auto before = usage_of("web/a");
  daemon->stop();
  daemon.reset();
  node.restart_group("web/b");
  start();
  tick();
  EXPECT_GE(usage_of("web/a"), before);
  EXPECT_LE(usage_of("web/b"), 1U);
}

}  // namespace berth::daemon
