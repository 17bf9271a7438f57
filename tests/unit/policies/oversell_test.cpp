// SPDX-License-Identifier: Apache-2.0
#include "policies/decide.h"
#include "policies/oversell/demand.h"
#include "policies/oversell/peak.h"
#include "policies/oversell/policy.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/gpu_hosts.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using model::SchedulingState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGiB;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Running for long, with a sample a second up to now; GiB in use.
model::Workload task(const std::string& id, std::vector<double> cores, double gib = 1) {
  model::Workload made = testing::best_effort(id);
  made.created = 1;
  made.usage.clear();
  double time = 1000 - static_cast<double>(cores.size());
  for (const double use : cores) {
    model::UsageSample sample;
    sample.time = ++time;
    sample.cpu_cores = use;
    sample.memory_bytes = static_cast<std::uint64_t>(gib * static_cast<double>(kGiB));
    made.usage.push_back(sample);
  }
  return made;
}

model::Workload asking(model::Workload workload, double cores, double gib = 0) {
  workload.cpu_quota_cores = cores;
  workload.memory_request_bytes = static_cast<std::uint64_t>(gib * static_cast<double>(kGiB));
  return workload;
}

// 16 vCPUs, 64 GiB.
model::Snapshot node(std::vector<model::Workload> workloads, double memory_used = 0.1) {
  model::Snapshot snapshot = testing::gpu_host("a", {});
  snapshot.workloads = std::move(workloads);
  snapshot.memory.available_bytes =
      static_cast<std::uint64_t>((1 - memory_used) * static_cast<double>(snapshot.memory.total_bytes));
  return snapshot;
}

model::OversellFindings findings(const model::Snapshot& snapshot, const PolicySettings& settings = {}) {
  return propose_advertising(snapshot, settings).findings;
}

PolicySettings with(PeakMethod method) {
  PolicySettings settings;
  settings.oversell.peak = method;
  settings.oversell.factor_rise = 1;
  return settings;
}

std::vector<model::AdvertiseAction> advertised(const model::Snapshot& snapshot) {
  std::vector<model::AdvertiseAction> actions;
  for (const model::Action& action : propose_advertising(snapshot, {}).actions)
    actions.push_back(std::get<model::AdvertiseAction>(action.what));
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

TEST(Oversell, SumsUseAtTheTimesThatAllHave) {
  model::Workload late = task("b", {5, 6});
  testing::change_samples(late,
                          [](auto& samples) { samples.front().time = 990; });  // no other workload has that
  const auto found = findings(node({task("a", {1, 2, 3}), late}));
  EXPECT_EQ(found.cpu.samples, 1);
  EXPECT_DOUBLE_EQ(found.cpu.percentile.value(), 3 + 6);
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
  EXPECT_DOUBLE_EQ(found.cpu.warming, 3);
  EXPECT_DOUBLE_EQ(found.cpu.peak, 4 + 3);
  EXPECT_DOUBLE_EQ(found.memory.request, 12.0 * kGiB);
  EXPECT_DOUBLE_EQ(found.memory.peak, 9.0 * kGiB);
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
  lender.held_cpu = {.cause = model::HeldCause::reclaimed, .since = 900, .changed_at = 900};
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
  EXPECT_THAT(findings(snapshot).order, ElementsAre("marked", "low-cheap", "low-dear", "mid"));
  PolicySettings settings;
  settings.oversell.evict_highest = true;
  const auto found = findings(snapshot, settings);
  EXPECT_THAT(found.order, ElementsAre("marked", "low-cheap", "low-dear", "mid", "young", "old"));
  EXPECT_DOUBLE_EQ(found.candidates.at("young").running_priority.value(), 900 * 0.25);
  EXPECT_EQ(found.candidates.at("mid").stage, 2);
  EXPECT_DOUBLE_EQ(found.candidates.at("low-dear").cost, 3 * 999);
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
  const EvictionCost cost = [](const model::Workload& it) { return it.id == "b" ? 1.0 : 2.0; };
  EXPECT_THAT(propose_advertising(node({evictable("a"), evictable("b")}, 0.9), {}, cost).findings.order,
              ElementsAre("b", "a"));
}

TEST(Oversell, AdvertisesWhatIsNew) {
  model::Snapshot snapshot = node({asking(task("a", {4, 4}), 6, 1)});
  EXPECT_THAT(advertised(snapshot),
              ElementsAre(model::AdvertiseAction{model::Resource::cpu, 1.02, 1.02 * 16, {}}));
  snapshot.advertised.cpu = {.factor = 1.5};
  EXPECT_THAT(advertised(snapshot), IsEmpty());
  snapshot.advertised.cpu = {.factor = 1.495};  // less than min_change away
  EXPECT_THAT(advertised(snapshot), IsEmpty());
  snapshot.workloads = {asking(task("a", {6, 6}), 6, 1)};
  snapshot.advertised.cpu = {.factor = 1.005};  // back to what there is, however near
  EXPECT_THAT(advertised(snapshot), ElementsAre(model::AdvertiseAction{model::Resource::cpu, 1, 16, {}}));
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
        const auto& said = std::get<model::AdvertiseAction>(action.what);
        auto& resource =
            said.resource == model::Resource::cpu ? snapshot.advertised.cpu : snapshot.advertised.memory;
        resource = {.factor = said.factor, .state = said.state};
      }
    }
    EXPECT_GT(snapshot.advertised.cpu->factor, 3 / 1.01) << rise;
    EXPECT_LE(snapshot.advertised.cpu->factor, 3) << rise;
  }
}

std::vector<model::EvictAction> evictions(const model::Plan& plan) {
  std::vector<model::EvictAction> list;
  for (const model::Action& action : plan.actions) {
    if (const auto* evict = std::get_if<model::EvictAction>(&action.what)) list.push_back(*evict);
  }
  return list;
}

// Three that use 1 GiB each and are marked; a is the cheapest.
model::Snapshot full_node(double memory_used) {
  std::vector<model::Workload> all{task("a", {1}), task("b", {2}), task("c", {3})};
  for (model::Workload& workload : all) workload.evictable = true;
  return node(all, memory_used);
}

PolicySettings evicting() {
  PolicySettings settings;
  settings.oversell.evict = true;
  return settings;
}

TEST(OversellEviction, TakesTheFirstInAnEmergency) {
  const model::Plan plan = decide(full_node(0.98), evicting());
  ASSERT_EQ(evictions(plan).size(), 1U);
  EXPECT_EQ(evictions(plan)[0], (model::EvictAction{"a", model::EvictionStep::terminate, kGiB, 1}));
  EXPECT_EQ(plan.actions.front().policy, "oversell");
  EXPECT_THAT(plan.actions.front().reason, HasSubstr("2 of 3 candidates would have to end"));
}

TEST(OversellEviction, IsOffUnlessTheConfigurationSaysSo) {
  EXPECT_THAT(evictions(decide(full_node(0.99), {})), IsEmpty());
  EXPECT_THAT(evictions(decide(full_node(0.99), {}, {"oversell"})), IsEmpty());
  EXPECT_THAT(evictions(decide(full_node(0.94), evicting())), IsEmpty()) << "below the threshold";
  EXPECT_THAT(evictions(decide(full_node(0.99), evicting(), {"interference"})), IsEmpty());
}

TEST(OversellEviction, CountsWhoIsOnHisWayOutAsGone) {
  model::Snapshot snapshot = full_node(0.98);  // 1.92 GiB too much
  snapshot.workloads[0].evicted_at = 999;
  const auto one_left = decide(snapshot, evicting());
  ASSERT_EQ(evictions(one_left).size(), 1U);
  EXPECT_EQ(evictions(one_left)[0].workload, "b");
  EXPECT_EQ(one_left.findings.oversell->evict_count, 1);
  EXPECT_EQ(one_left.findings.oversell->freeing_bytes, kGiB);
  snapshot.workloads[1].evicted_at = 1000;
  const auto enough = decide(snapshot, evicting());
  EXPECT_THAT(evictions(enough), IsEmpty());
  EXPECT_EQ(enough.findings.oversell->evict_count, 0);
}

TEST(OversellEviction, PassesOverWhoCannotBeEvictedOrFreesNothing) {
  model::Snapshot snapshot = full_node(0.99);
  snapshot.workloads[0].fixed.life = true;
  snapshot.workloads[1] = task("b", {2}, 0);
  snapshot.workloads[1].evictable = true;
  EXPECT_EQ(evictions(decide(snapshot, evicting())).at(0).workload, "c");
  snapshot.workloads[2].fixed = {.cpu = true, .memory = true};
  EXPECT_THAT(evictions(decide(snapshot, evicting())), IsEmpty());
}

// As it is before its first sample.
model::Workload unseen(model::Workload workload) {
  workload.usage.clear();
  return workload;
}

TEST(OversellEviction, OfAlikeOnesWhoseUseIsNotKnownGoesLast) {
  model::Snapshot snapshot = full_node(0.98);
  snapshot.workloads[0] = unseen(snapshot.workloads[0]);
  snapshot.workloads.push_back(task("low", {1}));
  snapshot.workloads.push_back(unseen(task("d-low", {1})));
  snapshot.workloads.push_back(task("high", {1}));
  snapshot.workloads.back().priority = 1;
  const auto plan = decide(snapshot, evicting());
  EXPECT_THAT(plan.findings.oversell->order, ElementsAre("b", "c", "a", "low", "d-low"));
  EXPECT_EQ(evictions(plan).at(0).workload, "b");
}

TEST(OversellEviction, WhoseUseIsNotKnownGoesBeforeHigherPrioritiesAndIsWaitedFor) {
  model::Snapshot snapshot = full_node(0.98);
  snapshot.workloads = {unseen(snapshot.workloads[0]), task("b", {1}), task("c", {1})};
  snapshot.workloads[2].priority = 1;
  const auto first = decide(snapshot, evicting());
  ASSERT_EQ(evictions(first).size(), 1U);
  EXPECT_EQ(evictions(first)[0], (model::EvictAction{"a", model::EvictionStep::terminate, 0, 1}));
  snapshot.workloads[0].evicted_at = 999;
  const auto meanwhile = decide(snapshot, evicting());
  EXPECT_THAT(evictions(meanwhile), IsEmpty());
  EXPECT_GE(meanwhile.findings.oversell->evict_count, 1);
  EXPECT_THAT(meanwhile.findings.oversell->memory.reason, HasSubstr("and berth waits for the effect"));
  snapshot.workloads.erase(snapshot.workloads.begin());
  EXPECT_EQ(evictions(decide(snapshot, evicting())).at(0).workload, "b");
}

TEST(OversellEviction, ADriverGoesAfterAnExecutorOfWhichNothingIsKnown) {
  model::Snapshot snapshot = full_node(0.98);
  snapshot.workloads[0].spark = model::SparkIdentity{"app", model::SparkRole::driver, std::nullopt};
  snapshot.workloads[2] = unseen(snapshot.workloads[2]);
  snapshot.workloads[2].spark = model::SparkIdentity{"app", model::SparkRole::executor, "1"};
  snapshot.spark_apps.emplace_back().id = "app";
  EXPECT_THAT(decide(snapshot, evicting()).findings.oversell->order, ElementsAre("b", "c", "a"));
}

TEST(OversellEviction, PricesExecutorsAsTheSparkPolicyDoes) {
  model::Snapshot snapshot = full_node(0.98);
  snapshot.workloads[2].spark = model::SparkIdentity{"app", model::SparkRole::executor, "1"};
  snapshot.spark_apps.emplace_back().id = "app";  // has nothing to lose yet
  const auto found = evictions(decide(snapshot, evicting()));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], (model::EvictAction{"c", model::EvictionStep::decommission, kGiB, 1}));
}

TEST(OversellEviction, ADriverGoesAfterItsExecutors) {
  model::Snapshot snapshot = full_node(0.98);
  snapshot.workloads[0].spark = model::SparkIdentity{"app", model::SparkRole::driver, std::nullopt};
  snapshot.workloads[2].spark = model::SparkIdentity{"app", model::SparkRole::executor, "1"};
  // Nothing is completed, so the application is worth nothing yet, and its executor what it is at.
  snapshot.spark_apps.emplace_back().id = "app";
  snapshot.spark_apps.back().running = {{"1", 5}};
  EXPECT_THAT(decide(snapshot, evicting()).findings.oversell->order, ElementsAre("c", "a", "b"));
}

TEST(OversellEviction, BothPoliciesTogetherTakeOne) {
  model::Snapshot snapshot = full_node(0.98);
  snapshot.workloads[0].evictable = false;  // of the highest priority: the other policy's alone
  PolicySettings settings = evicting();
  settings.spark.evict = true;
  const auto found = decide(snapshot, settings);
  ASSERT_EQ(evictions(found).size(), 1U);
  EXPECT_EQ(evictions(found)[0].workload, "b");
}

TEST(Oversell, NothingIsEvictedAndThePlanSaysWhoWould) {
  model::Workload batch = task("batch", {1}, 40);
  batch.evictable = true;
  const model::Plan plan = decide(node({batch}, 0.99), {}, {"oversell"});
  for (const model::Action& action : plan.actions) EXPECT_STREQ(action.kind(), "advertise");
  EXPECT_EQ(plan.findings.oversell->evict_count, 1);
  EXPECT_THAT(plan.findings.oversell->order, ElementsAre("batch"));
}

// Restates the victim of docs/decisions/eviction-order.md: strikes off every candidate that is behind another
// one; "" for none.
std::string evicted_first(const model::Snapshot& snapshot) {
  const auto total = static_cast<double>(snapshot.memory.total_bytes);
  double free = static_cast<double>(snapshot.memory.available_bytes);
  const bool full = total - free >= 0.95 * total - 1e-3;
  const auto use = [](const model::Workload& it) {
    return it.usage.empty() ? 0.0 : static_cast<double>(it.usage.back().memory_bytes.value_or(0));
  };
  for (const model::Workload& it : snapshot.workloads)
    if (it.evicted_at) free += use(it);
  if (!full || total - free < 0.95 * total) return "";
  const auto unknown = [](const model::Workload& it) { return it.usage.empty(); };
  for (const model::Workload& it : snapshot.workloads)
    if (it.evicted_at && unknown(it)) return "";
  const auto best_effort = [](const model::Workload& it) {
    return it.workload_class == model::WorkloadClass::best_effort;
  };
  int highest = -1000;
  for (const model::Workload& it : snapshot.workloads)
    if (best_effort(it) && !it.evictable) highest = std::max(highest, it.priority);
  const model::Workload* first = nullptr;
  for (const model::Workload& it : snapshot.workloads) {
    if (!best_effort(it) || it.evicted_at || it.fixed.life || (!unknown(it) && use(it) <= 0)) continue;
    if (unknown(it) && it.created > 0 && snapshot.time - it.created < 10) continue;
    if (!it.evictable && it.priority == highest) continue;
    const auto goes_before = [&it, &unknown](const model::Workload& other) {
      if (it.evictable != other.evictable) return it.evictable;
      if (!it.evictable && it.priority != other.priority) return it.priority < other.priority;
      if (unknown(it) != unknown(other)) return unknown(other);
      return *it.cpu_time_s != *other.cpu_time_s ? *it.cpu_time_s < *other.cpu_time_s : it.id < other.id;
    };
    if (first == nullptr || goes_before(*first)) first = &it;
  }
  return first == nullptr ? "" : first->id;
}

RC_GTEST_PROP(OversellProperty, EvictsWhomItsRestatementSays, ()) {
  testing::Draws draws(*testing::any_seed());
  model::Snapshot snapshot = node({}, 0.9 + 0.1 * draws.fraction());
  for (int i = draws.number(0, 8); i > 0; --i) {
    model::Workload made = task("w" + std::to_string(i), {1}, draws.chance(0.1) ? 0 : 3 * draws.fraction());
    if (draws.chance(0.2)) made.workload_class = model::WorkloadClass::latency_sensitive;
    made.evictable = draws.chance(0.3);
    made.priority = draws.number(0, 3);
    made.cpu_time_s = draws.number(0, 5);
    made.fixed.life = draws.chance(0.2);
    if (draws.chance(0.15)) made.evicted_at = 999;
    if (draws.chance(0.15)) made.usage.clear();
    if (draws.chance(0.3)) made.created = snapshot.time - draws.number(0, 20);
    snapshot.workloads.push_back(made);
  }
  const std::vector<model::EvictAction> found = evictions(decide(snapshot, evicting()));
  const std::string expected = evicted_first(snapshot);
  RC_CLASSIFY(!expected.empty(), "an eviction");
  RC_ASSERT(found.size() == (expected.empty() ? 0U : 1U));
  if (!expected.empty()) RC_ASSERT(found[0].workload == expected);
}

}  // namespace berth::policies
