// SPDX-License-Identifier: Apache-2.0
// The victims of overselling, and how many end at once.
#include "policies/decide.h"
#include "policies/oversell/policy.h"
#include "policies/victim.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/oversell/oversell_nodes.h"
#include "tests/unit/policies/placement/gpu_hosts.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGiB;
using testing::node;
using testing::task;

}  // namespace

std::vector<model::Evict> evictions(const model::Plan& plan) {
  std::vector<model::Evict> list;
  for (const model::Action& action : plan.actions) {
    if (const auto* evict = std::get_if<model::Evict>(&action.what)) list.push_back(*evict);
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
  EXPECT_EQ(evictions(plan)[0], (model::Evict{"a", model::EvictionStep::terminate, kGiB, 1}));
  EXPECT_EQ(plan.actions.front().policy, "oversell");
  EXPECT_THAT(plan.actions.front().reason, HasSubstr("2 of 3 candidates would have to end"));
}

// Its memory grew by so many GiB a second, up to what it uses now.
model::Workload growing(model::Workload workload, double gib_per_s) {
  const double now_bytes = static_cast<double>(*workload.usage.back().memory_bytes);
  workload.usage.clear();
  for (int second = 9; second >= 0; --second) {
    model::UsageSample sample;
    sample.time = 1000 - second;
    sample.cpu_cores = 1;
    sample.memory_bytes = static_cast<std::uint64_t>(std::max(0.0, now_bytes - gib_per_s * second * kGiB));
    workload.usage.push_back(sample);
  }
  return workload;
}

TEST(OversellEviction, TakesSeveralWhereMemoryRisesFasterThanOneAtATimeFreesIt) {
  // 0.99 of 64 GiB: 2.56 GiB too much, or three workloads of 1 GiB.
  const auto victims = [](double gib_per_s, double grace_s = 30) {
    model::Snapshot snapshot = full_node(0.99);
    model::Workload web = growing(task("web", {1}, 20), gib_per_s);
    web.workload_class = model::WorkloadClass::latency_sensitive;
    snapshot.workloads.push_back(web);
    PolicySettings settings = evicting();
    settings.eviction.grace_s = grace_s;
    std::vector<std::string> ids;
    for (const auto& evict : evictions(decide(snapshot, settings))) ids.push_back(evict.workload);
    return ids;
  };
  EXPECT_THAT(victims(0), ElementsAre("a"));
  EXPECT_THAT(victims(-1), ElementsAre("a"));
  EXPECT_THAT(victims(0.3), ElementsAre("a"));  // 0.9 GiB in the 3 s of an eviction
  EXPECT_THAT(victims(0.4), ElementsAre("a", "b"));
  EXPECT_THAT(victims(0.4, 0.5), ElementsAre("a"));  // it takes 1.5 s
  EXPECT_THAT(victims(5), ElementsAre("a", "b", "c"));
}

TEST(OversellEviction, CountsMemoryThatIsBeingFreedAgainstTheRise) {
  model::Snapshot snapshot = full_node(0.99);
  snapshot.workloads[0].evicted_at = 999;
  snapshot.workloads.push_back(growing(task("web", {1}, 20), 0.6));  // 1.8 GiB
  snapshot.workloads.back().workload_class = model::WorkloadClass::latency_sensitive;
  EXPECT_EQ(evictions(decide(snapshot, evicting())).size(), 1U);
  snapshot.workloads[3] = growing(snapshot.workloads[3], 0.7);  // 2.1 GiB
  EXPECT_EQ(evictions(decide(snapshot, evicting())).size(), 2U);
}

TEST(OversellEviction, CountsNewWorkFromNothing) {
  model::Snapshot snapshot = full_node(0.99);
  model::Workload young = task("web", {1}, 2);
  young.workload_class = model::WorkloadClass::latency_sensitive;
  snapshot.workloads.push_back(young);
  EXPECT_EQ(evictions(decide(snapshot, evicting())).size(), 1U) << "old work with one sample";
  snapshot.workloads.back().created = 999;
  EXPECT_EQ(evictions(decide(snapshot, evicting())).size(), 2U);
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

TEST(OversellEviction, SmallGroupsOfAUserCountTogether) {
  constexpr double kSmall = 15.0 / 1024;  // GiB
  model::Snapshot snapshot = full_node(0.99);
  snapshot.workloads = {task("a", {1}, kSmall), task("b", {1}, kSmall)};
  EXPECT_THAT(evictions(decide(snapshot, evicting())), IsEmpty());
  for (auto& workload : snapshot.workloads) workload.user = 1000;
  EXPECT_EQ(evictions(decide(snapshot, evicting())).size(), 2U) << "one alone frees next to nothing";
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
  EXPECT_THAT(plan.findings.oversell->order, ElementsAre("b", "c", "a", "low", "d-low", "high"));
  EXPECT_EQ(evictions(plan).at(0).workload, "b");
}

TEST(OversellEviction, WhoseUseIsNotKnownGoesBeforeHigherPrioritiesAndIsWaitedFor) {
  model::Snapshot snapshot = full_node(0.98);
  snapshot.workloads = {unseen(snapshot.workloads[0]), task("b", {1}), task("c", {1})};
  snapshot.workloads[2].priority = 1;
  const auto first = decide(snapshot, evicting());
  ASSERT_EQ(evictions(first).size(), 1U);
  EXPECT_EQ(evictions(first)[0], (model::Evict{"a", model::EvictionStep::terminate, 0, 1}));
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
  EXPECT_EQ(found[0], (model::Evict{"c", model::EvictionStep::decommission, kGiB, 1}));
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
  snapshot.workloads[0].evictable = false;
  snapshot.workloads[0].priority = 100;  // of the top priority: the other policy's alone
  PolicySettings settings = evicting();
  settings.eviction.evict = true;
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

TEST(Oversell, ThePlanNamesTheChosenOnesWhichAreNotTheFirstIfThoseFreeTooLittle) {
  model::Snapshot snapshot = full_node(0.97);  // 1.28 GiB too much, which b and c free
  testing::change_samples(snapshot.workloads[0], [](std::vector<model::UsageSample>& samples) {
    for (model::UsageSample& sample : samples) sample.memory_bytes = kLeastFreedBytes + 1;
  });
  const auto found = decide(snapshot, {}).findings.oversell;
  EXPECT_THAT(found->order, ElementsAre("a", "b", "c"));
  EXPECT_THAT(found->chosen, ElementsAre("b"));
  const model::Plan plan = decide(snapshot, evicting());
  ASSERT_EQ(evictions(plan).size(), 1U);
  EXPECT_EQ(evictions(plan)[0].workload, "b");
  EXPECT_EQ(plan.findings.oversell->chosen, found->chosen);
  EXPECT_THAT(decide(full_node(0.94), evicting()).findings.oversell->chosen, IsEmpty());
}

double use_of(const model::Workload& it) {
  return it.usage.empty() ? 0.0 : static_cast<double>(it.usage.back().memory_bytes.value_or(0));
}

// Restates the order of docs/decisions/eviction-order.md, among those that are large enough.
std::vector<const model::Workload*> those_that_may_end(const model::Snapshot& snapshot, int top_priority) {
  std::vector<const model::Workload*> able;
  for (const model::Workload& it : snapshot.workloads) {
    const bool young = it.created > 0 && snapshot.time - it.created < 10;
    if (it.workload_class != model::WorkloadClass::best_effort || it.evicted_at || it.fixed.life) continue;
    if (it.usage.empty() ? young : use_of(it) < 16.0 * 1024 * 1024) continue;
    if (it.evictable || it.priority < top_priority) able.push_back(&it);
  }
  const auto loss = [&snapshot](const model::Workload& it) {
    return std::max(5.0, *it.cpu_time_s + (it.created > 0 ? (snapshot.time - it.created) / 100 : 0.0));
  };
  std::sort(able.begin(), able.end(), [&loss](const auto* a, const auto* b) {
    if (a->evictable != b->evictable) return a->evictable;
    if (!a->evictable && a->priority != b->priority) return a->priority < b->priority;
    if (a->usage.empty() != b->usage.empty()) return b->usage.empty();
    if (loss(*a) != loss(*b)) return loss(*a) < loss(*b);
    return use_of(*a) != use_of(*b) ? use_of(*a) > use_of(*b) : a->id < b->id;
  });
  return able;
}

// Of all sets that end with the one that covers the need, and cover it, the one that spares the dearest.
std::vector<const model::Workload*> cheapest_set(std::vector<const model::Workload*> able, double need,
                                                 double least) {
  std::erase_if(able, [&](const auto* it) { return !it->usage.empty() && use_of(*it) < least; });
  double sum = 0;
  for (std::size_t i = 0; i < able.size(); ++i) {
    sum += use_of(*able[i]);
    if (sum >= need || able[i]->usage.empty()) able.resize(i + 1);
  }
  if (able.empty() || able.back()->usage.empty() || sum < need) return able;
  const std::size_t last = able.size() - 1;
  // The dearest is the highest bit, so the least number spares it first.
  for (std::size_t members = 0; members < (std::size_t{1} << last); ++members) {
    std::vector<const model::Workload*> set;
    double freed = 0;
    for (std::size_t i = 0; i <= last; ++i) {
      if (i != last && (members >> i & 1U) == 0) continue;
      set.push_back(able[i]);
      freed += use_of(*able[i]);
    }
    if (freed >= need) return set;
  }
  return able;
}

// Restates the victims of docs/decisions/eviction-order.md. Young work alone rises here, as each workload has
// one sample. No more end at once than `most`.
std::vector<std::string> evicted(const model::Snapshot& snapshot, int top_priority, int most) {
  const auto total = static_cast<double>(snapshot.memory.total_bytes);
  const double excess = total - static_cast<double>(snapshot.memory.available_bytes) - 0.95 * total;
  double freeing = 0;
  double rise = 0;
  for (const model::Workload& it : snapshot.workloads) {
    if (it.evicted_at && it.usage.empty()) return {};
    if (it.evicted_at) freeing += use_of(it);
    if (!it.evicted_at && it.created > snapshot.time - 3) rise += use_of(it);
  }
  if (excess < -1e-3 || freeing > excess) return {};
  const auto able = those_that_may_end(snapshot, top_priority);
  const double need = std::max(0.0, std::max(excess, rise) - freeing);
  std::vector<const model::Workload*> victims = cheapest_set(able, need, need / 100);
  double freed = 0;
  for (const model::Workload* it : victims) freed += use_of(*it);
  if (freed < need && (victims.empty() || !victims.back()->usage.empty()))
    victims = cheapest_set(able, need, 0);
  std::vector<std::string> found;
  double uncovered = rise - freeing;
  for (const model::Workload* it : victims) {
    found.push_back(it->id);
    uncovered -= use_of(*it);
    if (it->usage.empty() || uncovered <= 0 || std::ssize(found) >= most) break;
  }
  return found;
}

RC_GTEST_PROP(OversellProperty, EvictsWhomItsRestatementSays, ()) {
  testing::Draws draws(*testing::any_seed());
  model::Snapshot snapshot = node({}, 0.9 + 0.1 * draws.fraction());
  for (int i = draws.number(0, 8); i > 0; --i) {
    model::Workload made = task("w" + std::to_string(i), {1}, draws.chance(0.1) ? 0 : 3 * draws.fraction());
    if (draws.chance(0.2)) made.workload_class = model::WorkloadClass::latency_sensitive;
    made.evictable = draws.chance(0.3);
    made.priority = draws.number(0, 3);
    made.cpu_time_s = draws.number(0, 15);
    made.fixed.life = draws.chance(0.2);
    if (draws.chance(0.15)) made.evicted_at = 999;
    if (draws.chance(0.15)) made.usage.clear();
    if (draws.chance(0.3)) made.created = snapshot.time - draws.number(0, 20);
    snapshot.workloads.push_back(made);
  }
  PolicySettings settings = evicting();
  settings.oversell.top_priority = draws.number(0, 4);
  const std::vector<model::Evict> found = evictions(decide(snapshot, settings));
  const std::vector<std::string> expected = evicted(
      snapshot, settings.oversell.top_priority, propose_advertising(snapshot, settings).findings.evict_count);
  RC_CLASSIFY(!expected.empty(), "an eviction");
  RC_CLASSIFY(expected.size() > 1, "several at once");
  std::vector<std::string> ended;
  for (const model::Evict& it : found) ended.push_back(it.workload);
  // Actions of one plan are in the order of their ids.
  RC_ASSERT(std::set(ended.begin(), ended.end()) == std::set(expected.begin(), expected.end()));
}

}  // namespace berth::policies
