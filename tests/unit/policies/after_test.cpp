// SPDX-License-Identifier: Apache-2.0
#include "policies/after.h"

#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace berth::policies {

namespace {

class AfterTest : public ::testing::Test {
 protected:
  AfterTest() {
    for (const char* id : {"a", "b", "c"}) {
      model::Workload& workload = snapshot.workloads.emplace_back();
      workload.id = id;
      workload.cgroup_id = snapshot.workloads.size();
    }
    snapshot.groups = {{.id = "a"}, {.id = "batch.slice"}};
    settings.eviction.hold_s = 60;
  }

  // The next tick, at `time`, with the plan that `change` makes. All of it happens.
  template <typename Change>
  void tick(double time, Change change) {
    model::Plan plan;
    plan.time = time;
    snapshot.time = time;
    change(plan);
    standing = after(std::move(standing), snapshot, plan, assumed(plan), settings);
  }
  void tick(double time) {
    tick(time, [](const model::Plan&) {});
  }
  void find_stragglers(double time, const std::set<std::string>& ids) {
    tick(time, [&](model::Plan& plan) {
      auto& tasks = plan.findings.straggler.emplace().tasks;
      tasks["c"].reason = "in time";
      for (const auto& id : ids) tasks[id].straggler = true;
    });
  }
  void mark(double time, const std::string& group, std::optional<model::LowPriority> priority) {
    tick(time, [&](model::Plan& plan) {
      model::Action::What what = model::GiveBack{group, model::Attribute::cpu_idle};
      if (priority) what = model::Set{group, *priority};
      plan.actions.push_back({what, "interference", "", ""});
    });
  }
  std::optional<model::LowPriority> held_by(const std::string& group) {
    model::put_on(standing, snapshot);
    return find_group(snapshot, group)->held;
  }
  void evict(double time, const std::string& id) {
    tick(time, [&](model::Plan& plan) {
      plan.actions.push_back({model::Evict{.workload = id}, "eviction", "d-1", "because"});
    });
  }
  void be_short(double time) {
    tick(time, [](model::Plan& plan) { plan.findings.eviction.emplace().need_bytes = 1; });
  }
  // The workload as the next tick's policies see it.
  model::Workload shown(const std::string& id) {
    model::put_on(standing, snapshot);
    return *find_workload(snapshot, id);
  }
  model::Workload& workload(const std::string& id) { return *find_workload(snapshot, id); }
  void restart(const std::string& id) { workload(id).cgroup_id += 100; }

  model::Snapshot snapshot;
  PolicySettings settings;
  model::Standing standing;
};

}  // namespace

TEST_F(AfterTest, RemembersWhenEachWasLastAStraggler) {
  find_stragglers(10, {"a", "b"});
  find_stragglers(11, {"a"});
  find_stragglers(12, {});
  EXPECT_EQ(shown("a").straggled_at, 11);
  EXPECT_EQ(shown("b").straggled_at, 10);
  EXPECT_EQ(shown("c").straggled_at, std::nullopt);
  EXPECT_EQ(snapshot.straggler_seen_at, 11);
}

TEST_F(AfterTest, APlanWithoutStragglersForgetsNone) {
  find_stragglers(10, {"a"});
  tick(11);
  EXPECT_EQ(shown("a").straggled_at, 10);
  EXPECT_EQ(snapshot.straggler_seen_at, 10);
}

TEST_F(AfterTest, RemembersWhenEachLastWantedBackWhatItLent) {
  using Kind = model::LimitMove::Kind;
  tick(10, [](model::Plan& plan) {
    plan.findings.straggler.emplace().moves = {{Kind::recall, "a", {1, 0}, ""},
                                               {Kind::reclaim, "b", {1, 0}, ""}};
  });
  tick(11);
  EXPECT_EQ(shown("a").pressed_at, 10);
  EXPECT_EQ(shown("b").pressed_at, std::nullopt);
}

TEST_F(AfterTest, RemembersWhoShouldRunElsewhere) {
  tick(10, [](model::Plan& plan) { plan.findings.straggler.emplace().relocate = {{"a", {2, 4096}}}; });
  EXPECT_EQ(standing.runs.at("a").relocated_at, 10);
}

TEST_F(AfterTest, ARestartedWorkloadInheritsNothing) {
  find_stragglers(10, {"a"});
  restart("a");
  EXPECT_EQ(shown("a").straggled_at, std::nullopt);
  EXPECT_EQ(snapshot.straggler_seen_at, 10) << "there was one, whatever became of it";
  tick(11);
  EXPECT_TRUE(standing.runs.empty());
}

TEST_F(AfterTest, ARecordedRunGoesByTheTimeAtWhichItBegan) {
  workload("a").cgroup_id = 0;
  workload("a").created = 5;
  find_stragglers(10, {"a"});
  EXPECT_EQ(shown("a").straggled_at, 10);
  workload("a").created = 9;
  EXPECT_EQ(shown("a").straggled_at, std::nullopt);
}

TEST_F(AfterTest, AWorkloadThatIsGoneIsForgotten) {
  find_stragglers(10, {"a", "b"});
  snapshot.workloads.erase(snapshot.workloads.begin());
  tick(11);
  EXPECT_EQ(standing.runs.size(), 1U);
}

TEST_F(AfterTest, WhatIsPendingHasNoMemory) {
  find_stragglers(10, {"not here yet"});
  EXPECT_EQ(standing, model::Standing());
}

TEST_F(AfterTest, AGroupHasThePriorityThatThePlanGaveItLast) {
  mark(10, "batch.slice", model::LowPriority::idle);
  EXPECT_EQ(held_by("batch.slice"), model::LowPriority::idle);
  EXPECT_EQ(held_by("a"), std::nullopt);
  mark(11, "batch.slice", model::LowPriority::weight);
  EXPECT_EQ(held_by("batch.slice"), model::LowPriority::weight);
  EXPECT_EQ(standing.groups.at("batch.slice").held.since, 10);
  EXPECT_EQ(standing.groups.at("batch.slice").held.changed_at, 11);
  model::take_off(snapshot);
  mark(12, "batch.slice", std::nullopt);
  EXPECT_EQ(held_by("batch.slice"), std::nullopt);
}

TEST_F(AfterTest, WhatIsNoGroupAnyMoreHasNoPriority) {
  mark(10, "batch.slice", model::LowPriority::idle);
  snapshot.groups.pop_back();
  tick(11);
  snapshot.groups.push_back({.id = "batch.slice"});
  EXPECT_EQ(held_by("batch.slice"), std::nullopt);
}

TEST_F(AfterTest, WhatIsNoGroupGetsNone) {
  mark(10, "b", model::LowPriority::idle);
  EXPECT_TRUE(standing.groups.empty());
}

TEST_F(AfterTest, RemembersWhoseExecutorWasEvictedAsLongAsMemoryIsShort) {
  workload("a").spark = model::SparkIdentity{"app-1", model::SparkRole::executor, "0"};
  evict(1000, "a");
  EXPECT_EQ(standing.spark_evicted, (std::map<std::string, double>{{"app-1", 1000}}));
  be_short(1500);
  tick(1559);
  EXPECT_EQ(standing.spark_evicted.size(), 1U);
  tick(1560);
  EXPECT_TRUE(standing.spark_evicted.empty());
}

TEST_F(AfterTest, AnEvictionThatDidNotBeginIsNone) {
  workload("a").spark = model::SparkIdentity{"app-1", model::SparkRole::executor, "0"};
  model::Plan plan;
  plan.actions.push_back({model::Evict{.workload = "a"}, "eviction", "d-1", "because"});
  EXPECT_TRUE(after({}, snapshot, plan, {}, settings).spark_evicted.empty());
  EXPECT_EQ(after({}, snapshot, plan, assumed(plan), settings).spark_evicted.size(), 1U);
}

TEST_F(AfterTest, TheEndOfOtherWorkHoldsNobody) {
  evict(1000, "b");
  EXPECT_TRUE(standing.spark_evicted.empty());
}

TEST_F(AfterTest, AClockThatWentBackHoldsNobodyForLong) {
  standing.spark_evicted = {{"app-1", 2000}, {"app-2", 990}};
  tick(1000);
  EXPECT_EQ(standing.spark_evicted, (std::map<std::string, double>{{"app-2", 990}}));
  settings.eviction.hold_s = 0;
  tick(1001);
  EXPECT_TRUE(standing.spark_evicted.empty()) << "0: nobody";
}

TEST_F(AfterTest, EvictionsOfAnotherModeAreForgotten) {
  workload("a").spark = model::SparkIdentity{"app-1", model::SparkRole::executor, "0"};
  evict(1000, "a");
  be_short(1001);
  find_stragglers(1002, {"b"});
  model::forget_evictions(standing);
  EXPECT_TRUE(standing.spark_evicted.empty());
  EXPECT_EQ(standing.memory_short_at, std::nullopt);
  EXPECT_EQ(shown("b").straggled_at, 1002);
}

TEST_F(AfterTest, RemembersWhoGotNoVcpusOfItsOwnInTheLastPlan) {
  tick(10, [](model::Plan& plan) { plan.findings.interference.emplace().unplaceable = {{"a", "no room"}}; });
  EXPECT_EQ(standing.sharing, std::set<std::string>{"a"});
  tick(11);
  EXPECT_TRUE(standing.sharing.empty());
}

TEST_F(AfterTest, KeepsWhatWasAdvertisedUntilSomethingElseIs) {
  const auto advertise = [this](double time, double factor) {
    tick(time, [factor](model::Plan& plan) {
      plan.actions.push_back({model::Advertise{.resource = model::Resource::memory, .factor = factor},
                              "oversell", "d-1", "because"});
    });
  };
  advertise(10, 1.2);
  tick(11);
  model::put_on(standing, snapshot);
  EXPECT_EQ(snapshot.advertised.memory->factor, 1.2);
  EXPECT_EQ(snapshot.advertised.cpu, std::nullopt);
  advertise(12, 1.1);
  EXPECT_EQ(standing.advertised.memory->factor, 1.1);
}

TEST_F(AfterTest, HasTheMeansOfTheLastFiveMinutes) {
  EXPECT_EQ(model::recent_use(standing, 1000), std::nullopt);
  const auto use = [this](double time, double cpu, double memory, double load1) {
    snapshot.load1 = load1;
    tick(time, [&](model::Plan& plan) {
      auto& findings = plan.findings.oversell.emplace();
      findings.cpu.utilisation = cpu;
      findings.memory.utilisation = memory;
    });
  };
  use(1000, 0.9, 0.1, 16);
  use(1100, 0.5, 0.2, 8);
  use(1300, 0.1, 0.4, 2);
  EXPECT_EQ(model::recent_use(standing, 1301),
            (model::RecentUse{.samples = 2, .cpu = 0.3, .memory = 0.30000000000000004, .load1 = 5}));
  EXPECT_EQ(model::recent_use(standing, 1500)->samples, 1);
  EXPECT_EQ(model::recent_use(standing, 1600), std::nullopt);
  EXPECT_EQ(model::recent_use(standing, 1200)->cpu, 0.5) << "a clock that went back";
  tick(1301);  // a plan without findings
  EXPECT_EQ(model::recent_use(standing, 1301)->samples, 2);
}

TEST_F(AfterTest, WhatItWouldHoldIsTakenOffAgain) {
  const model::Snapshot bare = snapshot;
  tick(1000, [](model::Plan& plan) {
    plan.actions.push_back({model::Set{"a", model::CpuSet{1}}, "interference", "", ""});
  });
  mark(1001, "batch.slice", model::LowPriority::idle);
  EXPECT_EQ(shown("a").cpus, model::CpuSet{1});
  EXPECT_EQ(held_by("batch.slice"), model::LowPriority::idle);
  model::take_off(snapshot);
  EXPECT_EQ(snapshot.workloads, bare.workloads);
  EXPECT_EQ(snapshot.groups, bare.groups);
}

TEST_F(AfterTest, ARecordedSnapshotShowsWhatStood) {
  workload("a").spark = model::SparkIdentity{"app-1", model::SparkRole::executor, "0"};
  evict(1000, "a");
  find_stragglers(1001, {"b"});
  mark(1002, "a", model::LowPriority::weight);
  model::put_on(standing, snapshot);
  model::Snapshot shown_again = snapshot;
  model::put_on({}, shown_again);
  EXPECT_NE(shown_again, snapshot);
  model::put_on(model::standing_in(snapshot), shown_again);
  EXPECT_EQ(shown_again, snapshot);
}

}  // namespace berth::policies
