// SPDX-License-Identifier: Apache-2.0
// Executors that come in place of evicted ones. Time 1000; the last eviction of their application began at
// 900.
#include "policies/replacements.h"

#include "policies/decide.h"
#include "policies/eviction/policy.h"
#include "policies/straggler/policy.h"
#include "tests/unit/policies/hosts.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

model::Workload executor(const std::string& id, double created, std::uint64_t bytes = kGiB) {
  model::Workload made = testing::best_effort(id, 0.02);
  made.spark = model::SparkIdentity{"app-1", model::SparkRole::executor, id};
  made.created = created;
  made.usage.clear();
  for (int i = 0; i < 4; ++i) {
    model::UsageSample sample;
    sample.time = 997 + i;
    sample.cpu_cores = 0.02;
    sample.memory_bytes = bytes;
    made.usage.push_back(sample);
  }
  return made;
}

// Memory is wanted where `available` is 0.
model::Snapshot node(std::vector<model::Workload> workloads, std::uint64_t available = 8 * kGiB) {
  model::Snapshot made = testing::snapshot_of(testing::host({}));
  made.time = 1000;
  made.memory.total_bytes = 16 * kGiB;
  made.memory.available_bytes = available;
  made.workloads = std::move(workloads);
  made.spark_evicted = {{"app-1", 900}};
  return made;
}

std::vector<std::string> held(const model::Snapshot& snapshot, const EvictionSettings& settings = {}) {
  std::vector<std::string> ids;
  for (const auto& [id, reason] : propose_evictions(snapshot, settings).findings.held) ids.push_back(id);
  return ids;
}

// "id cores" and "id MiB" of what is set.
std::vector<std::string> limits(const std::vector<model::Action>& actions) {
  std::vector<std::string> list;
  for (const model::Action& action : actions) {
    if (const auto* quota = action.sets<model::CpuQuota>())
      list.push_back(*action.workload() + " " +
                     (quota->cores ? std::to_string(*quota->cores).substr(0, 4) : "free"));
    if (const auto* high = action.sets<model::MemoryHigh>())
      list.push_back(*action.workload() + " " + (high->bytes ? std::to_string(*high->bytes / kMiB) : "free"));
  }
  return list;
}

// As berth holds it once that was carried out.
model::Workload lowered(model::Workload workload) {
  workload.original = model::OriginalLimits{};
  workload.cpu_quota_cores = kHeldCores;
  workload.held_cpu = model::HeldLimit{model::HeldCause::preempted, 950, 950};
  return workload;
}

}  // namespace

TEST(SparkHold, WhoCameAfterAnEvictionIsHeldUntilThatIsForgotten) {
  auto snapshot = node({executor("before", 800), executor("new", 901)});
  EXPECT_THAT(held(snapshot), ElementsAre("new"));
  EXPECT_THAT(held(snapshot, {.hold_s = 0}), IsEmpty()) << "not at all";
  snapshot.spark_evicted.clear();
  EXPECT_THAT(held(snapshot), IsEmpty());
}

TEST(SparkHold, MemoryIsShortWhereSomeIsMissingOrWorkHasToGo) {
  model::Snapshot snapshot = node({});
  model::Plan plan;
  EXPECT_FALSE(is_memory_short(snapshot, plan));
  plan.findings.eviction.emplace().trigger = model::EvictionTrigger::pressure;
  EXPECT_FALSE(is_memory_short(snapshot, plan)) << "they stall who are there";
  plan.findings.eviction->need_bytes = 1;
  EXPECT_TRUE(is_memory_short(snapshot, plan));
  snapshot.advertised.memory = model::AdvertisedResource{1, model::SchedulingState::no_schedule};
  EXPECT_FALSE(is_memory_short(snapshot, {}));
  snapshot.advertised.memory->state = model::SchedulingState::evict;
  EXPECT_TRUE(is_memory_short(snapshot, {}));
}

TEST(SparkHold, AtATenthOfACore) {
  const auto proposal = propose_evictions(node({executor("a", 950), executor("b", 950, 10 * kMiB)}, 0), {});
  EXPECT_THAT(limits(proposal.actions), ElementsAre("a 0.10", "b 0.10"));
  EXPECT_THAT(proposal.findings.held.at("a"),
              HasSubstr("it replaces an executor of app-1 that was evicted 100 s ago"));
}

TEST(SparkHold, NobodyIsGivenMoreThanHeHas) {
  auto workload = executor("a", 950);
  workload.cpu_quota_cores = 0.05;
  EXPECT_THAT(limits(propose_evictions(node({workload}, 0), {}).actions), ElementsAre("a 0.05"));
  workload.fixed = {.cpu = true};
  EXPECT_THAT(propose_evictions(node({workload}, 0), {}).actions, IsEmpty());
}

TEST(SparkHold, WhatItIsHeldAtFirstStays) {
  auto workload = lowered(executor("a", 950));
  EXPECT_THAT(limits(propose_evictions(node({workload}, 0), {}).actions), ElementsAre("a 0.10"));
  PolicySettings settings;
  EXPECT_THAT(limits(decide(node({workload}, 0), settings).actions), IsEmpty()) << "it is so already";
}

TEST(SparkHold, OnlyExecutorsAloneOfThatApplication) {
  auto driver = executor("driver", 950);
  driver.spark->role = model::SparkRole::driver;
  auto shared = executor("shared", 950);
  shared.spared = "its cgroup is shared";
  auto going = executor("going", 950);
  going.evicted_at = 999;
  auto sensitive = executor("sensitive", 950);
  sensitive.workload_class = model::WorkloadClass::latency_sensitive;
  auto other = executor("other", 950);
  other.spark->app = "app-2";
  auto plain = executor("plain", 950);
  plain.spark.reset();
  const auto snapshot = node({driver, going, other, plain, sensitive, shared}, 0);
  EXPECT_THAT(held(snapshot), IsEmpty());
}

TEST(SparkHold, OneWhoIsHeldCanBeEvicted) {
  const auto snapshot = node({lowered(executor("a", 950)), executor("b", 800)}, 0);
  const auto proposal = propose_evictions(snapshot, {.evict = true});
  ASSERT_FALSE(proposal.findings.victims.empty());
  EXPECT_EQ(proposal.findings.victims.front().workload, "a");
  ASSERT_EQ(proposal.actions.size(), 1U) << "and is not held any more then";
  EXPECT_TRUE(std::holds_alternative<model::Evict>(proposal.actions.front().what));
}

TEST(SparkHold, ItLendsNothingAndGetsNothingBackMeanwhile) {
  auto awaited = node({lowered(executor("a", 950))}, 0);
  model::PendingWorkload pending;
  pending.id = "web";
  pending.vcpus = 8;
  pending.memory_request_bytes = 12 * kGiB;
  awaited.pending = {pending};
  EXPECT_THAT(propose_help(awaited, {}).actions, IsEmpty());
  EXPECT_THAT(propose_help(awaited, {}).findings.redundant, IsEmpty());
  const auto quiet = node({lowered(executor("a", 950))}, 0);
  EXPECT_THAT(propose_help(quiet, {}).actions, IsEmpty());
  PolicySettings settings;
  EXPECT_THAT(limits(decide(quiet, settings).actions), IsEmpty());
}

TEST(SparkHold, ThenItGetsAllBack) {
  auto over = node({lowered(executor("a", 950))});
  over.spark_evicted.clear();
  PolicySettings settings;
  settings.safety.be_quota_rise = 1;
  settings.straggler.restore_step = 1;
  EXPECT_THAT(limits(decide(over, settings).actions), ElementsAre("a free"));
}

}  // namespace berth::policies
