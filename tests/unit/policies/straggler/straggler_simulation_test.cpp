// SPDX-License-Identifier: Apache-2.0
// Many ticks in a row: best-effort work with a square wave of load beside tasks with deadlines. The test
// counts the writes.
#include "policies/decide.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/straggler/stragglers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

constexpr double kStart = 1000;
constexpr std::size_t kWindow = 60;

// One task and two batch jobs on eight vCPUs, a second a tick. The task has 100 core seconds per percent of
// work to do and works with what it has; the jobs want much and little in turns.
class Simulation {
 public:
  explicit Simulation(double period_s) : period_s_(period_s) {
    snapshot_ = testing::snapshot_of(testing::host({}));
    snapshot_.memory.total_bytes = 64 * testing::kGiB;
    model::Workload web = testing::task("web", 2, kStart + 300, {});
    snapshot_.workloads = {testing::batch("a", 4, 0), testing::batch("b", 2, 0), web};
    for (model::Workload& workload : snapshot_.workloads) workload.usage.clear();
    start_ = snapshot_;
  }

  void tick(double work) {
    snapshot_.time += 1;
    const double elapsed = snapshot_.time - kStart;
    const bool busy = std::fmod(elapsed, period_s_) < period_s_ / 2;
    for (model::Workload& workload : snapshot_.workloads) {
      const double wants = workload.id == "web" ? 8.0 : busy ? 3.5 : 0.5;
      const double limit = workload.cpu_quota_cores.value_or(8);
      const double used = std::min(wants, limit);
      workload.cpu_throttled = wants > limit ? 0.5 : 0.0;
      model::UsageSample sample;
      sample.time = snapshot_.time;
      sample.cpu_cores = used;
      workload.usage.add(sample, kWindow);
      if (workload.id != "web") continue;
      done_ = std::min(1.0, done_ + used / work);
      if (static_cast<int>(elapsed) % 5 != 0) continue;
      workload.progress.push_back({snapshot_.time, done_});
      if (workload.progress.size() > 6) workload.progress.erase(workload.progress.begin());
    }
    const model::Plan plan = decide(snapshot_, {});
    for (const model::Action& action : plan.actions) {
      if (action.workload() == nullptr) continue;  // advertised
      ++writes_[*action.workload()];
      if (const auto* quota = action.sets<model::CpuQuota>()) {
        ASSERT_TRUE(quota->cores.has_value());
        ASSERT_GE(*quota->cores, *action.workload() == "web" ? 2.0 : 0.1) << snapshot_.time;
        lowest_ = std::min(lowest_, *quota->cores);
      }
    }
    testing::carry_out(plan, snapshot_);
  }

  bool as_it_was() const {
    for (std::size_t i = 0; i < snapshot_.workloads.size(); ++i) {
      const model::Workload& now = snapshot_.workloads[i];
      if (now.cpu_quota_cores != start_.workloads[i].cpu_quota_cores) return false;
      if (now.memory_high_bytes != start_.workloads[i].memory_high_bytes) return false;
      if (now.cpus != start_.workloads[i].cpus || now.held_cpu || now.held_memory) return false;
    }
    return true;
  }

  model::Snapshot snapshot_;
  model::Snapshot start_;
  double period_s_;
  double done_ = 0;
  double lowest_ = 100;
  std::map<std::string, int> writes_;
};

// A job that works in one of ten periods of its quota, for all of that at once: it uses a tenth of what it
// had at first, and any less throttles it in each burst. Beside it a request for one vCPU that waits all the
// time, and `rest`, which has what is left of the eight.
class Bursts {
 public:
  explicit Bursts(model::Workload rest) {
    snapshot_ = testing::snapshot_of(testing::host({}));
    snapshot_.memory.total_bytes = 64 * testing::kGiB;
    snapshot_.pending = {testing::pending("new", 1)};
    model::Workload bursty = testing::batch("bursty", kFull, 0);
    bursty.priority = 1;
    snapshot_.workloads = {bursty, std::move(rest)};
    for (model::Workload& workload : snapshot_.workloads) workload.usage.clear();
  }

  void tick() {
    snapshot_.time += 1;
    for (model::Workload& workload : snapshot_.workloads) {
      const bool bursty = workload.id == "bursty";
      const double limit = *workload.cpu_quota_cores;
      model::UsageSample sample;
      sample.time = snapshot_.time;
      sample.cpu_cores = bursty ? limit / 10 : limit;
      workload.cpu_throttled = bursty && limit >= kFull ? 0.0 : 0.1;
      workload.usage.add(sample, kWindow);
    }
    const model::Plan plan = policies::decide(snapshot_, {});
    for (const model::Action& action : plan.actions) {
      if (action.workload() != nullptr) ++writes_[*action.workload()];
    }
    testing::carry_out(plan, snapshot_);
  }

  static constexpr double kFull = 1.2;
  model::Snapshot snapshot_;
  std::map<std::string, int> writes_;
};

}  // namespace

TEST(StragglerSimulation, ASquareWaveBringsFewWritesAndEverythingGoesBack) {
  // Alone it would need 375 s of 300: it is given more, at the expense of the jobs.
  Simulation simulation(40);
  while (simulation.done_ < 1 && simulation.snapshot_.time < kStart + 600) simulation.tick(750);
  EXPECT_EQ(simulation.done_, 1);
  // Given as much as brings it there in time, from a few reports on: not 75 s late any more.
  EXPECT_LE(simulation.snapshot_.time, kStart + 305);
  EXPECT_LT(simulation.lowest_, 4);
  for (int tick = 0; tick < 120; ++tick) simulation.tick(750);
  EXPECT_TRUE(simulation.as_it_was());
  for (const auto& [id, count] : simulation.writes_) EXPECT_LE(count, 7) << id;
  const auto before = simulation.writes_;
  for (int tick = 0; tick < 200; ++tick) simulation.tick(750);
  EXPECT_EQ(simulation.writes_, before);
}

TEST(StragglerSimulation, ATaskThatIsInTimeChangesNothing) {
  Simulation simulation(40);
  for (int tick = 0; tick < 400; ++tick) simulation.tick(400);
  EXPECT_EQ(simulation.done_, 1);
  EXPECT_THAT(simulation.writes_, ::testing::IsEmpty());
}

TEST(StragglerSimulation, ATaskThatHangsIsGivenNoMoreThanOnceForIt) {
  Simulation simulation(40);
  for (int tick = 0; tick < 60; ++tick) simulation.tick(1e9);
  EXPECT_GT(simulation.writes_["web"], 0);
  // Silent from here on.
  const int before = simulation.writes_["web"];
  const auto quota = simulation.snapshot_.workloads[2].cpu_quota_cores;
  for (int tick = 0; tick < 200; ++tick) {
    auto& reports = simulation.snapshot_.workloads[2].progress;
    const auto said = reports;
    simulation.tick(1e9);
    reports = said;
  }
  EXPECT_LE(simulation.writes_["web"], before + 1);
  EXPECT_GE(*simulation.snapshot_.workloads[2].cpu_quota_cores, *quota);
}

TEST(StragglerSimulation, ABurstyLenderBesideALastingNeedGetsItBackOnce) {
  // The other job is lower in priority and uses all it has.
  Bursts simulation(testing::batch("rest", 6.8, 0));
  for (int tick = 0; tick < 500; ++tick) simulation.tick();
  EXPECT_GT(simulation.writes_["bursty"], 0);
  for (const auto& [id, count] : simulation.writes_) EXPECT_LE(count, 4) << id;
  EXPECT_EQ(simulation.snapshot_.workloads[0].cpu_quota_cores, Bursts::kFull);
  EXPECT_DOUBLE_EQ(*simulation.snapshot_.workloads[1].cpu_quota_cores, 5.8);
}

TEST(StragglerSimulation, ABurstyLenderWithNobodyElseToTakeFromIsPreempted) {
  Bursts simulation(testing::task("rest", 6.8, kStart + 300, {}));
  for (int tick = 0; tick < 500; ++tick) simulation.tick();
  EXPECT_GT(simulation.writes_["bursty"], 0);
  for (const auto& [id, count] : simulation.writes_) EXPECT_LE(count, 7) << id;
  EXPECT_EQ(simulation.snapshot_.workloads[0].held_cpu->cause, model::HeldCause::preempted);
}

TEST(StragglerSimulation, ABurstyLenderBesideANeedThatIsNeverMetStaysPreempted) {
  Bursts simulation(testing::task("rest", 6.8, kStart + 300, {}));
  simulation.snapshot_.pending = {testing::pending("new", 3)};
  for (int tick = 0; tick < 500; ++tick) simulation.tick();
  for (const auto& [id, count] : simulation.writes_) EXPECT_LE(count, 7) << id;
  EXPECT_EQ(simulation.snapshot_.workloads[0].held_cpu->cause, model::HeldCause::preempted);
}

}  // namespace berth::policies
