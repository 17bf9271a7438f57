// SPDX-License-Identifier: Apache-2.0
#include "policies/decide.h"
#include "policies/oversell/demand.h"
#include "policies/oversell/peak.h"
#include "policies/oversell/policy.h"
#include "tests/unit/policies/oversell/oversell_nodes.h"
#include "tests/unit/policies/placement/gpu_hosts.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using model::SchedulingState;
using testing::asking;
using ::testing::ElementsAre;
using testing::findings;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGiB;
using testing::node;
using ::testing::Pair;
using testing::task;
using ::testing::UnorderedElementsAre;

PolicySettings with(PeakMethod method) {
  PolicySettings settings;
  settings.oversell.peak = method;
  settings.oversell.factor_rise = 1;
  return settings;
}

std::vector<model::Advertise> advertised(const model::Snapshot& snapshot) {
  std::vector<model::Advertise> actions;
  for (const model::Action& action : propose_advertising(snapshot, {}).actions)
    actions.push_back(std::get<model::Advertise>(action.what));
  return actions;
}

}  // namespace

TEST(OversellPeak, PercentileIsTheNearestRank) {
  std::vector<double> series;
  for (int i = 1; i <= 20; ++i) series.push_back(i);
  EXPECT_EQ(percentile_peak(series), 19);
  series.push_back(21);
  EXPECT_EQ(percentile_peak(series), 20);
  EXPECT_EQ(percentile_peak({3}), 3);
  EXPECT_EQ(percentile_peak({}), std::nullopt);
}

TEST(OversellPeak, NormalIsMeanAndThreePopulationDeviations) {
  EXPECT_DOUBLE_EQ(normal_peak({1, 3}).value(), 2 + 3 * 1.0);
  EXPECT_EQ(normal_peak({}), std::nullopt);
}

TEST(OversellPeak, WeightFollowsTheLoadWithinItsLimits) {
  EXPECT_DOUBLE_EQ(weighted_utilisation(0.5, 0.1, 8, 16), 0.5 * 0.5 + 0.5 * 0.1);
  EXPECT_DOUBLE_EQ(weighted_utilisation(0.5, 0.1, 0, 16), 0.2 * 0.5 + 0.8 * 0.1);
  EXPECT_DOUBLE_EQ(weighted_utilisation(0.5, 0.1, 100, 16), 0.8 * 0.5 + 0.2 * 0.1);
}

TEST(Oversell, LimitsThatAUserWroteAskForNothing) {
  model::Workload idle = task("user", {0, 0, 0}, 0);
  idle.cpu_quota_cores = 16;
  idle.memory_high_bytes = 64 * kGiB;
  EXPECT_GT(request_of(idle, model::Resource::cpu, 16), 15);
  idle.user = 1000;
  EXPECT_DOUBLE_EQ(request_of(idle, model::Resource::cpu, 16), 0) << "what it uses";
  const auto alone = findings(node({task("a", {1, 2, 3})}));
  const auto beside = findings(node({task("a", {1, 2, 3}), idle}));
  EXPECT_DOUBLE_EQ(beside.cpu.factor, alone.cpu.factor);
  EXPECT_DOUBLE_EQ(beside.score, alone.score);
  idle.created = 990;  // it warms up
  EXPECT_DOUBLE_EQ(findings(node({task("a", {1, 2, 3}), idle})).score, alone.score);
}

TEST(Oversell, SumsUseAtTheTimesThatAllHave) {
  model::Workload late = task("b", {5, 6});
  testing::change_samples(late,
                          [](auto& samples) { samples.front().time = 990; });  // no other workload has that
  const auto found = findings(node({task("a", {1, 2, 3}), late}));
  EXPECT_EQ(found.cpu.samples, 1);
  EXPECT_DOUBLE_EQ(found.cpu.percentile.value(), 3 + 6);
}

TEST(Oversell, WorkReadInTurnCountsAtEachTimeAndThinsOutNone) {
  const auto alone = findings(node({task("a", {1, 2, 3})}));
  model::Workload in_turn = task("b", {5});
  in_turn.user = 1000;
  testing::change_samples(in_turn, [](auto& samples) { samples.front().time -= 0.5; });
  const auto beside = findings(node({task("a", {1, 2, 3}), in_turn}));
  EXPECT_EQ(beside.cpu.samples, alone.cpu.samples);
  EXPECT_DOUBLE_EQ(beside.cpu.percentile.value(), alone.cpu.percentile.value() + 5);
}

TEST(Oversell, EachMethodGivesItsFactor) {
  // 12 cores asked for; series 2, 4: p95 4, mean 3 and three deviations 6.
  const model::Snapshot snapshot = node({asking(task("a", {2, 4}), 12)}, 0.25);
  EXPECT_DOUBLE_EQ(findings(snapshot, with(PeakMethod::percentile)).cpu.peak, 4);
  EXPECT_DOUBLE_EQ(findings(snapshot, with(PeakMethod::normal)).cpu.peak, 6);
  EXPECT_DOUBLE_EQ(findings(snapshot, with(PeakMethod::max)).cpu.peak, 6);
  // load1 is 0: 0.2 * 4 / 16 + 0.8 * 0.25 = 0.25 of the node.
  EXPECT_DOUBLE_EQ(findings(snapshot, with(PeakMethod::weighted)).cpu.peak, 0.25 * 16);
  const model::Snapshot less = node({asking(task("a", {5, 10}), 12)});
  EXPECT_DOUBLE_EQ(findings(less, with(PeakMethod::percentile)).cpu.wanted, 1.2);
  EXPECT_DOUBLE_EQ(findings(less, with(PeakMethod::percentile)).cpu.factor, 1.2);
  EXPECT_DOUBLE_EQ(findings(less, with(PeakMethod::normal)).cpu.factor, 1);
}

TEST(Oversell, TheWeightedPeakIsAMeanOverFiveMinutes) {
  model::Snapshot snapshot = node({asking(task("a", {2, 4}), 12)}, 0.25);
  // With this tick 0.25 and 0.25 of the CPU; 0.5 and 0.25 of the memory; load 12.8 and 0.
  snapshot.recent_use = model::RecentUse{.samples = 1, .cpu = 0.25, .memory = 0.5, .load1 = 12.8};
  EXPECT_DOUBLE_EQ(findings(snapshot, with(PeakMethod::weighted)).cpu.peak, (0.4 * 0.25 + 0.6 * 0.375) * 16);
}

TEST(Oversell, AFactorIsNeverBelowOneNorAboveTheLargest) {
  EXPECT_EQ(findings(node({asking(task("a", {15, 15}), 2)})).cpu.wanted, 1);
  EXPECT_EQ(findings(node({asking(task("a", {0, 0}), 2)})).cpu.wanted, 1.5);
  EXPECT_EQ(findings(node({})).cpu.wanted, 1);
}

TEST(Oversell, YoungWorkCountsWithWhatItAskedFor) {
  model::Workload young = asking(task("b", {1}), 6, 8);
  young.created = 401;  // 599 s old
  model::Snapshot snapshot = node({asking(task("a", {2, 4}), 6, 4), young});
  const auto found = findings(snapshot, with(PeakMethod::percentile));
  EXPECT_EQ(found.cpu.samples, 2);
  EXPECT_DOUBLE_EQ(found.cpu.peak, 4 + 6);
  EXPECT_DOUBLE_EQ(found.cpu.warming, 6);
  EXPECT_DOUBLE_EQ(found.memory.peak, 9.0 * kGiB);
  EXPECT_THAT(found.warming, UnorderedElementsAre(Pair("b", 599.0)));
  // By the weighted method in place of its use: (0.2 * 5 / 16 + 0.8 * 0.1) * 16 is 2.28 cores, 1 of them its.
  EXPECT_NEAR(findings(snapshot, with(PeakMethod::weighted)).cpu.peak, 2.28 - 1 + 6, 1e-9);
  snapshot.workloads[1].created = 400;
  EXPECT_THAT(findings(snapshot).warming, IsEmpty());
  // An old executor that has a cgroup of its own for a minute.
  snapshot.workloads[1].leaf_since = 940;
  EXPECT_THAT(findings(snapshot).warming, UnorderedElementsAre(Pair("b", 60.0)));
  snapshot.workloads[1].leaf_since = 400;
  EXPECT_THAT(findings(snapshot).warming, IsEmpty());
}

TEST(Oversell, WhatWasNeverSeenOfEitherResourceCountsWithWhatItAskedFor) {
  model::Workload old = asking(task("old", {1, 2}), 6, 8);
  testing::change_samples(old, [](auto& samples) {
    for (model::UsageSample& sample : samples) sample.memory_bytes = std::nullopt;
  });
  const auto found = findings(node({old, task("seen", {1, 2})}));
  EXPECT_THAT(found.warming, UnorderedElementsAre(Pair("old", 999.0)));
  EXPECT_DOUBLE_EQ(found.cpu.warming, 0);
  EXPECT_DOUBLE_EQ(found.memory.warming, 8.0 * kGiB);
  EXPECT_EQ(found.cpu.samples, 2);
  EXPECT_EQ(found.memory.samples, 2);
  EXPECT_THAT(found.memory.reason,
              HasSubstr("8 GiB of it requested by workloads that are new or have no known use"));
}

TEST(Oversell, ThereIsNoPeakBelowNothing) {
  // All of the node's CPU, and less of its memory: both together are less than what the young one uses.
  model::Workload young = asking(task("y", {16}), 4);
  young.created = 900;
  const auto found = findings(node({young}), with(PeakMethod::weighted));
  EXPECT_DOUBLE_EQ(*found.cpu.weighted, 0);
  EXPECT_DOUBLE_EQ(found.cpu.peak, 4);
  EXPECT_NEAR(*found.memory.weighted, (0.2 + 0.8 * 0.1) * 64 * kGiB - kGiB, 1);
  // Unlike the others it needs no common sample.
  EXPECT_EQ(found.cpu.percentile, std::nullopt);
}

TEST(Oversell, WhoIsWaitedForCountsWithWhatItAskedFor) {
  model::Snapshot snapshot = node({asking(task("a", {2, 4}), 12, 4)});
  snapshot.pending = {testing::request(3, 0, 8)};
  const auto found = findings(snapshot, with(PeakMethod::percentile));
  EXPECT_DOUBLE_EQ(found.cpu.request, 15);
  EXPECT_DOUBLE_EQ(found.cpu.latency_sensitive_request, 3);
  EXPECT_DOUBLE_EQ(found.cpu.warming, 3);
  EXPECT_DOUBLE_EQ(found.cpu.peak, 4 + 3);
  EXPECT_DOUBLE_EQ(found.memory.request, 12.0 * kGiB);
  EXPECT_DOUBLE_EQ(found.memory.peak, 9.0 * kGiB);
}

TEST(Oversell, TheScoreOfThePlanAddsCrowdingAndInterference) {
  // The example of the page: 10 of 16 cores at the peak, 30 % of the memory.
  const model::Plan plan =
      decide(node({asking(task("a", {5, 10}), 12, 4)}, 0.3), with(PeakMethod::percentile));
  ASSERT_TRUE(plan.findings.interference);
  EXPECT_DOUBLE_EQ(plan.findings.interference->score_node, 0);
  EXPECT_DOUBLE_EQ(plan.findings.oversell->score, 10.0 / 16);
  const model::Plan alone =
      decide(node({asking(task("a", {5, 10}), 12, 4)}, 0.7), with(PeakMethod::percentile), {"oversell"});
  EXPECT_NEAR(alone.findings.oversell->score, 0.7, 1e-9);
}

TEST(Oversell, BestEffortWorkIsOfferedTheVcpusThatNoInstanceOwns) {
  model::Workload service = task("web", {1, 2});
  service.workload_class = model::WorkloadClass::latency_sensitive;
  service.vcpus = 4;
  const model::Snapshot snapshot = node({service, task("batch", {1, 2})});
  const auto capacity = decide(snapshot, {}).findings.oversell->cpu.best_effort_capacity;
  EXPECT_EQ(capacity, 12);
  EXPECT_EQ(decide(snapshot, {}).findings.oversell->memory.best_effort_capacity, std::nullopt);
  // Where no pins are planned, nothing is known of them.
  EXPECT_EQ(decide(snapshot, {}, {"oversell"}).findings.oversell->cpu.best_effort_capacity, std::nullopt);
}

TEST(Oversell, TheTidesOfTheDayCountForWhatIsAskedForNow) {
  // In use now 2 of 10 cores; in the day's spans of five minutes half of what was asked for then, in two 0.8.
  model::Snapshot snapshot = node({asking(task("a", {2, 2}), 10, 10)});
  EXPECT_EQ(findings(snapshot).cpu.remembered, std::nullopt);
  EXPECT_DOUBLE_EQ(*findings(snapshot).cpu.used_share, 0.2);
  for (int i = 0; i < 20; ++i) {
    // Of fewer than twenty nothing can be told.
    EXPECT_EQ(findings(snapshot).cpu.remembered, std::nullopt);
    snapshot.used_shares.push_back({.time = 300.0 * i, .cpu = i < 18 ? 0.5 : 0.8, .memory = 0.5});
  }
  const auto found = findings(snapshot, with(PeakMethod::percentile));
  EXPECT_DOUBLE_EQ(*found.cpu.remembered, 8);
  EXPECT_DOUBLE_EQ(found.cpu.peak, 8);
  EXPECT_DOUBLE_EQ(found.cpu.wanted, 1.25);
  EXPECT_THAT(found.cpu.reason, HasSubstr("the peak of the last day"));
  EXPECT_DOUBLE_EQ(*found.memory.remembered, 5.0 * kGiB);
  // Mean 0.53 and three deviations of 0.09.
  EXPECT_NEAR(*findings(snapshot, with(PeakMethod::normal)).cpu.remembered, 8, 1e-9);
  // The larger of the window's and the day's.
  snapshot.workloads = {asking(task("a", {9, 9}), 10, 10)};
  EXPECT_DOUBLE_EQ(findings(snapshot, with(PeakMethod::percentile)).cpu.peak, 9);
}

TEST(Oversell, TheDayKnowsNothingOfYoungWork) {
  model::Workload young = asking(task("b", {1}), 6, 8);
  young.created = 900;
  model::Snapshot snapshot = node({asking(task("a", {2, 2}), 10, 10), young});
  snapshot.used_shares.assign(20, {.time = 0, .cpu = 0.5, .memory = 0.5});
  const auto found = findings(snapshot, with(PeakMethod::percentile));
  EXPECT_DOUBLE_EQ(*found.cpu.used_share, 0.2);
  EXPECT_DOUBLE_EQ(*found.cpu.remembered, 5 + 6);
}

TEST(Oversell, WithoutACommonSampleRequestsCount) {
  model::Workload never_seen = asking(task("b", {}), 6);
  EXPECT_DOUBLE_EQ(findings(node({asking(task("a", {1}), 6), never_seen}), with(PeakMethod::max)).cpu.peak,
                   7);
  model::Workload elsewhere = asking(task("b", {1}), 6);
  testing::change_samples(elsewhere, [](auto& samples) { samples.front().time = 1; });
  const auto found = findings(node({asking(task("a", {1}), 6), elsewhere}), with(PeakMethod::max));
  EXPECT_EQ(found.cpu.percentile, std::nullopt);
  EXPECT_EQ(found.cpu.wanted, 1);
}

TEST(Oversell, WhatWasAskedForIsNotWhatBerthLeftOfIt) {
  model::Workload lender = asking(task("a", {1}), 2);
  lender.held_cpu = {.cause = model::HeldCause::lent, .since = 900, .changed_at = 900};
  lender.original = {.cpu_quota_cores = 8, .memory_high_bytes = {}};
  EXPECT_DOUBLE_EQ(findings(node({lender})).cpu.request, 8);
}

TEST(Oversell, TheFactorFallsAtOnceAndRisesSlowly) {
  model::Snapshot snapshot = node({asking(task("a", {4, 4}), 6)});
  EXPECT_DOUBLE_EQ(findings(snapshot).cpu.factor, 1.02);
  snapshot.advertised.cpu = {.factor = 1.3};
  EXPECT_DOUBLE_EQ(findings(snapshot).cpu.factor, 1.32);
  snapshot.workloads = {asking(task("a", {6, 6}), 6)};
  EXPECT_DOUBLE_EQ(findings(snapshot).cpu.factor, 1);
}

TEST(Oversell, TakesNoWorkFromTheThresholdUntilWellBelowIt) {
  const auto state = [](double used, SchedulingState before) {
    model::Snapshot snapshot = node({}, used);
    snapshot.advertised.memory = {.factor = 1, .state = before};
    return findings(snapshot).memory.state;
  };
  EXPECT_EQ(state(0.84, SchedulingState::schedule), SchedulingState::schedule);
  EXPECT_EQ(state(0.851, SchedulingState::schedule), SchedulingState::no_schedule);
  EXPECT_EQ(state(0.81, SchedulingState::no_schedule), SchedulingState::no_schedule);
  EXPECT_EQ(state(0.79, SchedulingState::no_schedule), SchedulingState::schedule);
  EXPECT_EQ(state(0.951, SchedulingState::schedule), SchedulingState::evict);
  EXPECT_EQ(state(0.94, SchedulingState::evict), SchedulingState::no_schedule);
  EXPECT_EQ(state(0.79, SchedulingState::evict), SchedulingState::schedule);
}

TEST(Oversell, CpuClosesTheNodeButNeverEvicts) {
  const auto found = findings(node({task("a", {16, 16})}));
  EXPECT_EQ(found.cpu.state, SchedulingState::no_schedule);
  EXPECT_EQ(found.evict_count, 0);
}

TEST(Oversell, ReservedVcpusAreNoCapacity) {
  auto snapshot = node({});
  const auto all = static_cast<double>(snapshot.topology.usable().size());
  snapshot = node({task("a", std::vector<double>(20, all / 2))});
  PolicySettings settings;
  for (const int cpu : snapshot.topology.usable()) {
    if (2 * settings.interference.reserved_cpus.size() < snapshot.topology.usable().size())
      settings.interference.reserved_cpus.insert(cpu);
  }
  EXPECT_EQ(findings(snapshot, settings).cpu.utilisation, 1);
  settings.interference.reserved = Reserved::shared;
  EXPECT_EQ(findings(snapshot, settings).cpu.utilisation, 0.5);
}

TEST(Oversell, AMemoryCapIsWhatCounts) {
  PolicySettings settings;
  settings.oversell.memory_cap_bytes = 32 * kGiB;
  const auto found = findings(node({}, 0.45), settings);
  EXPECT_DOUBLE_EQ(found.memory.capacity, 32.0 * kGiB);
  EXPECT_NEAR(found.memory.utilisation, 0.9, 1e-9);
  settings.oversell.memory_cap_bytes = 1024 * kGiB;  // more than there is
  EXPECT_DOUBLE_EQ(findings(node({}, 0.45), settings).memory.capacity, 64.0 * kGiB);
}

TEST(Oversell, CountsWhoHasToGoByWhatBestEffortWorkUses) {
  model::Workload web = task("web", {1}, 30);
  web.workload_class = model::WorkloadClass::latency_sensitive;
  const auto evictable = [](const std::string& id, double gib) {
    model::Workload made = task(id, {1}, gib);
    made.evictable = true;
    return made;
  };
  // 0.98 of 64 GiB: 0.03 * 64 = 1.92 GiB too much; best-effort work uses 1 GiB on average.
  const std::vector<model::Workload> all{web, evictable("a", 0.5), evictable("b", 1), evictable("c", 1.5)};
  EXPECT_EQ(findings(node(all, 0.98)).evict_count, 2);
  EXPECT_EQ(findings(node(all, 0.9501)).evict_count, 1);
  EXPECT_EQ(findings(node(all, 0.94)).evict_count, 0);
  EXPECT_EQ(findings(node({web}, 0.98)).evict_count, 0);
  EXPECT_THAT(findings(node(all, 0.98)).memory.reason, HasSubstr("2 of 3 candidates would have to end"));
}

TEST(Oversell, EvictableFirstThenLowerPrioritiesThenTheHighestWhereWished) {
  const auto with_priority = [](model::Workload workload, int priority) {
    workload.priority = priority;
    return workload;
  };
  model::Workload marked = with_priority(task("marked", {9}), 50);
  marked.evictable = true;
  model::Workload web = task("web", {1});
  web.workload_class = model::WorkloadClass::latency_sensitive;
  web.evictable = true;
  // Of priority 10: young holds a quarter of what it asked for, old uses all of it.
  model::Workload young = with_priority(asking(task("young", {1}, 1), 1, 4), 10);
  young.created = 100;
  const model::Workload old = with_priority(asking(task("old", {1}, 4), 1, 4), 10);
  const model::Snapshot snapshot =
      node({marked, web, young, old, with_priority(task("low-dear", {3}), 1),
            with_priority(task("low-cheap", {2}), 1), with_priority(task("mid", {1}), 5)},
           0.9);
  PolicySettings settings;
  settings.oversell.top_priority = 10;
  EXPECT_THAT(findings(snapshot, settings).order, ElementsAre("marked", "low-cheap", "low-dear", "mid"));
  settings.oversell.evict_highest = true;
  const auto found = findings(snapshot, settings);
  EXPECT_THAT(found.order, ElementsAre("marked", "low-cheap", "low-dear", "mid", "young", "old"));
  EXPECT_DOUBLE_EQ(found.candidates.at("young").running_priority.value(), 900 * 0.25);
  EXPECT_EQ(found.candidates.at("mid").stage, 2);
  EXPECT_DOUBLE_EQ(found.candidates.at("low-dear").cost, 3 * 999 + 0.01 * 999);
}

TEST(Oversell, TheTopPriorityIsPresetSoEqualPrioritiesAreEvicted) {
  std::vector<model::Workload> equal{task("b", {2}), task("a", {1})};
  auto found = findings(node(equal, 0.98));
  EXPECT_THAT(found.order, ElementsAre("a", "b"));
  EXPECT_EQ(found.candidates.at("a").stage, 2);
  for (model::Workload& workload : equal) workload.priority = 99;
  EXPECT_EQ(findings(node(equal, 0.98)).order.size(), 2U);
  equal[0].priority = 100;
  EXPECT_THAT(findings(node(equal, 0.98)).order, ElementsAre("a"));
}

TEST(Oversell, WarnsWhereMemoryRunsOutAndNothingMayBeEvicted) {
  model::Workload top = task("top", {1});
  top.priority = 100;
  model::Workload shared = task("shared", {1});
  shared.spared = "its cgroup is shared";
  model::Workload web = task("web", {1});
  web.workload_class = model::WorkloadClass::latency_sensitive;
  PolicySettings settings;
  EXPECT_EQ(findings(node({top, shared, web}, 0.98), settings).warning, std::nullopt) << "evict is off";
  settings.oversell.evict = true;
  EXPECT_EQ(findings(node({top, shared, web}, 0.94), settings).warning, std::nullopt);
  EXPECT_EQ(
      findings(node({top, shared, web}, 0.98), settings).warning,
      "memory has to become free, and no workload can be evicted: 1 best-effort workload of priority 100 "
      "or more (oversell.top_priority; oversell.evict_highest is false), 1 best-effort workload spared");
  EXPECT_EQ(findings(node({web}, 0.98), settings).warning,
            "memory has to become free, and no workload can be evicted: none is best-effort");
  model::Workload left_alone = task("alone", {1});
  left_alone.fixed.life = true;
  EXPECT_THAT(findings(node({left_alone}, 0.98), settings).warning.value_or(""), HasSubstr("cannot end"));
  left_alone.fixed.life = false;
  EXPECT_EQ(findings(node({top, left_alone}, 0.98), settings).warning, std::nullopt);
}

TEST(Oversell, NeverTakesWhatIsSpared) {
  model::Workload shared = task("shared", {1}, 40);
  shared.evictable = true;
  shared.spared = "its cgroup is shared";
  model::Workload marked = task("marked", {9}, 1);
  marked.evictable = true;
  EXPECT_THAT(findings(node({shared, marked}, 0.99)).order, ElementsAre("marked"));
}

TEST(Oversell, TakesACostFromOutside) {
  const auto evictable = [](const std::string& id) {
    model::Workload made = task(id, {1});
    made.evictable = true;
    return made;
  };
  const EvictionCost cost = [](const model::Workload& it) { return it.id == "b" ? 10.0 : 20.0; };
  EXPECT_THAT(propose_advertising(node({evictable("a"), evictable("b")}, 0.9), {}, cost).findings.order,
              ElementsAre("b", "a"));
}

TEST(Oversell, AdvertisesWhatIsNew) {
  model::Snapshot snapshot = node({asking(task("a", {4, 4}), 6, 1)});
  EXPECT_THAT(advertised(snapshot), ElementsAre(model::Advertise{model::Resource::cpu, 1.02, 1.02 * 16, {}}));
  snapshot.advertised.cpu = {.factor = 1.5};
  EXPECT_THAT(advertised(snapshot), IsEmpty());
  snapshot.advertised.cpu = {.factor = 1.495};  // less than min_change away
  EXPECT_THAT(advertised(snapshot), IsEmpty());
  snapshot.workloads = {asking(task("a", {6, 6}), 6, 1)};
  snapshot.advertised.cpu = {.factor = 1.005};  // back to what there is, however near
  EXPECT_THAT(advertised(snapshot), ElementsAre(model::Advertise{model::Resource::cpu, 1, 16, {}}));
}

TEST(Oversell, WhatIsAdvertisedComesToWhatIsWantedHoweverSmallTheSteps) {
  for (const double rise : {0.02, 0.005}) {
    PolicySettings settings;
    settings.oversell.max_factor = 3;
    settings.oversell.factor_rise = rise;
    model::Snapshot snapshot =
        node({asking(task("a", {1}), 16), asking(task("b", {1}), 16), asking(task("c", {1}), 16)});
    snapshot.advertised.cpu.emplace();
    for (int tick = 0; tick < 500; ++tick) {
      // It remembers the advertised state, not the found one.
      for (const model::Action& action : propose_advertising(snapshot, settings).actions) {
        const auto& said = std::get<model::Advertise>(action.what);
        auto& resource =
            said.resource == model::Resource::cpu ? snapshot.advertised.cpu : snapshot.advertised.memory;
        resource = {.factor = said.factor, .state = said.state};
      }
    }
    EXPECT_GT(snapshot.advertised.cpu->factor, 3 / 1.01) << rise;
    EXPECT_LE(snapshot.advertised.cpu->factor, 3) << rise;
  }
}

}  // namespace berth::policies
