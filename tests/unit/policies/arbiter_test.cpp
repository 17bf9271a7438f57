// SPDX-License-Identifier: Apache-2.0
// Merging, damping and order, on proposals made by hand and at random.
#include "policies/arbiter.h"

#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/interference/random_node.h"
#include "tests/unit/policies/seeds.h"
#include "tests/unit/rounding.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using testing::best_effort;
using testing::cpus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::host;
using ::testing::IsEmpty;
using testing::latency_sensitive;
using testing::pinned;
using testing::pins;
using ::testing::SizeIs;
using testing::snapshot_of;

using Actions = std::vector<model::Action>;

model::Action with(model::Action action, const std::string& policy) {
  action.policy = policy;
  return action;
}
model::Action pin(const std::string& workload, const std::string& cpulist) {
  return {
      .what = model::Set{workload, cpus(cpulist)}, .policy = "interference", .decision = {}, .reason = "r"};
}
model::Action unpin(const std::string& workload) {
  return {.what = model::GiveBack{workload, model::Attribute::cpus},
          .policy = "interference",
          .decision = {},
          .reason = "r"};
}
model::Action quota(const std::string& workload, std::optional<double> cores) {
  return {.what = model::Set{workload, model::CpuQuota{cores}},
          .policy = "straggler",
          .decision = {},
          .reason = "r"};
}
model::Action memory_high(const std::string& workload, std::optional<std::uint64_t> bytes) {
  return {.what = model::Set{workload, model::MemoryHigh{bytes}},
          .policy = "straggler",
          .decision = {},
          .reason = "r"};
}
model::Action evict(const std::string& workload, const char* policy = "eviction") {
  return {.what = model::Evict{.workload = workload}, .policy = policy, .decision = {}, .reason = "r"};
}
model::Action advertise(model::Resource resource) {
  return {
      .what = model::Advertise{.resource = resource}, .policy = "oversell", .decision = {}, .reason = "r"};
}

std::optional<double> quota_of(const Actions& actions, const std::string& workload) {
  for (const model::Action& action : actions) {
    const auto* it = action.sets<model::CpuQuota>();
    if (it != nullptr && *action.workload() == workload) return it->cores;
  }
  ADD_FAILURE() << "no quota for " << workload;
  return std::nullopt;
}

std::vector<std::string> steps(const Actions& actions) {
  std::vector<std::string> list;
  for (const model::Action& action : actions) {
    const std::string* workload = action.workload();
    list.push_back(action.kind() + (workload == nullptr ? std::string() : " " + *workload));
  }
  return list;
}

model::Workload with_quota(model::Workload workload, double cores) {
  workload.cpu_quota_cores = cores;
  return workload;
}

// Eight vCPUs in one domain, without SMT.
model::Snapshot eight(std::vector<model::Workload> workloads) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 8, .threads_per_core = 1}));
  snapshot.workloads = std::move(workloads);
  return snapshot;
}

model::Workload pinned_ago(model::Workload workload, const std::string& cpulist, double seconds) {
  workload = pinned(std::move(workload), cpulist);
  workload.pinned_at = 1000 - seconds;
  return workload;
}

}  // namespace

TEST(ArbiterMerge, KeepsOneValuePerAttributeOfEachWorkload) {
  const auto snapshot = eight({latency_sensitive("a", 2)});
  EXPECT_THAT(pins(arbitrate(snapshot, {pin("a", "2-3"), with(pin("a", "0-1"), "earlier")}, {})),
              ElementsAre("a=0-1"));
  EXPECT_THAT(arbitrate(snapshot, {pin("a", "0-1"), quota("a", 2), evict("a")}, {}), SizeIs(3));
}

TEST(ArbiterMerge, LetsGrowthWinOverGivingBackAndReclaimingOverRestoring) {
  const auto snapshot =
      eight({with_quota(best_effort("batch"), 2), with_quota(latency_sensitive("web", 2), 2)});
  const Actions actions =
      arbitrate(snapshot, {quota("batch", 2.5), quota("batch", 1), quota("web", 1), quota("web", 3)}, {});
  EXPECT_EQ(quota_of(actions, "batch"), 1);
  EXPECT_EQ(quota_of(actions, "web"), 3);
}

TEST(ArbiterMerge, DropsProposalsForWorkloadsThatAreNotThere) {
  EXPECT_THAT(arbitrate(eight({}), {pin("ghost", "0"), evict("ghost"), quota("ghost", 1)}, {}), IsEmpty());
}

TEST(ArbiterDamping, DropsWhatAlreadyHolds) {
  auto snapshot = eight({pinned(latency_sensitive("a", 2), "0-1"), with_quota(best_effort("b"), 2)});
  snapshot.workloads[1].memory_high_bytes = 4096;
  EXPECT_THAT(arbitrate(snapshot, {pin("a", "0-1"), unpin("b"), quota("b", 2), memory_high("b", 4096)}, {}),
              IsEmpty());
}

TEST(ArbiterDamping, DropsChangesBelowTheLeast) {
  auto snapshot = eight({with_quota(latency_sensitive("a", 2), 4), latency_sensitive("b", 2)});
  snapshot.workloads[0].memory_high_bytes = 1000000;
  EXPECT_THAT(arbitrate(snapshot, {quota("a", 4.03), memory_high("a", 991000)}, {}), IsEmpty());
  EXPECT_THAT(arbitrate(snapshot, {quota("a", 4.05), memory_high("a", 989000)}, {}), SizeIs(2));
  PolicySettings coarse;
  coarse.safety.min_change = 0.1;
  EXPECT_THAT(arbitrate(snapshot, {quota("a", 4.05), memory_high("a", 989000)}, coarse), IsEmpty());
}

TEST(ArbiterDamping, TakesALimitThatComesOrGoesForAChange) {
  auto snapshot = eight({with_quota(latency_sensitive("a", 2), 4), latency_sensitive("b", 2)});
  EXPECT_THAT(arbitrate(snapshot, {quota("a", std::nullopt), quota("b", 4)}, {}), SizeIs(2));
}

TEST(ArbiterDamping, RaisesABestEffortQuotaByATenthOfTheNodeATick) {
  const auto snapshot = eight({with_quota(best_effort("batch"), 2)});
  const Actions actions = arbitrate(snapshot, {quota("batch", 6)}, {});
  EXPECT_DOUBLE_EQ(quota_of(actions, "batch").value(), 2.8);
  EXPECT_THAT(actions.front().reason,
              HasSubstr("held to +0.8 cores this tick (be_quota_rise 0.1 of 8 vCPUs)"));
  EXPECT_DOUBLE_EQ(quota_of(arbitrate(snapshot, {quota("batch", 2.5)}, {}), "batch").value(), 2.5);
}

TEST(ArbiterDamping, LiftsABestEffortQuotaOnlyNearTheWholeNode) {
  EXPECT_DOUBLE_EQ(
      quota_of(arbitrate(eight({with_quota(best_effort("batch"), 2)}), {quota("batch", std::nullopt)}, {}),
               "batch")
          .value(),
      2.8);
  EXPECT_EQ(
      quota_of(arbitrate(eight({with_quota(best_effort("batch"), 7.5)}), {quota("batch", std::nullopt)}, {}),
               "batch"),
      std::nullopt);
}

TEST(ArbiterDamping, HoldsNeitherLowerQuotasNorLatencySensitiveOnes) {
  const auto snapshot =
      eight({with_quota(best_effort("batch"), 6), with_quota(latency_sensitive("web", 1), 1)});
  const Actions actions = arbitrate(snapshot, {quota("batch", 0.5), quota("web", 7)}, {});
  EXPECT_EQ(quota_of(actions, "batch"), 0.5);
  EXPECT_EQ(quota_of(actions, "web"), 7);
}

TEST(ArbiterCoolDown, HoldsASecondMoveOfAPinThatStands) {
  const auto snapshot = eight({pinned_ago(latency_sensitive("a", 2), "0-1", 9)});
  EXPECT_THAT(arbitrate(snapshot, {pin("a", "2-3")}, {}), IsEmpty());
  EXPECT_THAT(arbitrate(eight({pinned_ago(latency_sensitive("a", 2), "0-1", 10)}), {pin("a", "2-3")}, {}),
              SizeIs(1));
}

TEST(ArbiterCoolDown, HoldsNoRepair) {
  const std::vector<model::Workload> broken{pinned_ago(latency_sensitive("a", 3), "0-1", 1),
                                            pinned_ago(latency_sensitive("a", 2), "0,9", 1)};
  for (const model::Workload& workload : broken) {
    EXPECT_THAT(arbitrate(eight({workload}), {pin("a", "4-6")}, {}), SizeIs(1));
  }
  PolicySettings settings;
  settings.interference.reserved_cpus = cpus("0");
  const auto snapshot = eight({pinned_ago(latency_sensitive("a", 2), "0-1", 1)});
  EXPECT_THAT(arbitrate(snapshot, {pin("a", "2-3")}, settings), SizeIs(1));
}

TEST(ArbiterCoolDown, HoldsNoneOfTwoThatOverlap) {
  const auto snapshot = eight(
      {pinned_ago(latency_sensitive("a", 2), "0-1", 1), pinned_ago(latency_sensitive("b", 2), "1-2", 1)});
  EXPECT_THAT(pins(arbitrate(snapshot, {pin("b", "2-3")}, {})), ElementsAre("b=2-3"));
}

TEST(ArbiterCoolDown, HoldsNeitherANewPinNorGrowthInPlaceNorALift) {
  auto snapshot = eight({latency_sensitive("new", 2), pinned_ago(latency_sensitive("old", 2), "4-5", 1)});
  snapshot.workloads[0].pinned_at = 999;
  EXPECT_THAT(pins(arbitrate(snapshot, {pin("new", "0-1"), pin("old", "4-6")}, {})),
              ElementsAre("new=0-1", "old=4-6"));
  EXPECT_THAT(pins(arbitrate(snapshot, {unpin("old")}, {})), ElementsAre("old="));
}

TEST(ArbiterCoolDown, IsNotPutOffByAClockThatWentBackwards) {
  const auto snapshot = eight({pinned_ago(latency_sensitive("a", 2), "0-1", -50)});
  EXPECT_THAT(arbitrate(snapshot, {pin("a", "2-3")}, {}), SizeIs(1));
}

TEST(ArbiterCoolDown, HoldsWhoeverCountedOnTheVcpusThatStay) {
  const auto snapshot =
      eight({pinned_ago(latency_sensitive("a", 2), "0-1", 1), pinned(latency_sensitive("b", 2), "2-3"),
             latency_sensitive("c", 2), best_effort("batch")});
  // a may not leave 0-1, so b stays on 2-3, so c cannot have these; batch keeps off both.
  EXPECT_THAT(
      pins(arbitrate(snapshot, {pin("a", "6-7"), pin("b", "0-1"), pin("c", "2-3"), pin("batch", "2-5")}, {})),
      ElementsAre("batch=4-5"));
}

TEST(ArbiterOrder, FreesBeforeItHandsOut) {
  auto snapshot = eight({with_quota(best_effort("batch"), 4), pinned(best_effort("grows"), "6-7"),
                         best_effort("victim"), with_quota(latency_sensitive("web", 2), 2)});
  const Actions actions =
      arbitrate(snapshot,
                {advertise(model::Resource::cpu), quota("web", 3), pin("grows", "4-7"), pin("web", "0-1"),
                 pin("batch", "4-7"), quota("batch", 2), evict("victim"), memory_high("batch", 1 << 20)},
                {});
  EXPECT_THAT(steps(actions),
              ElementsAre("evict victim", "set-cpu-quota batch", "set-memory-high batch", "pin web",
                          "pin batch", "pin grows", "set-cpu-quota web", "advertise"));
}

TEST(ArbiterOrder, EvictsInTheOrderOfThePolicy) {
  const auto snapshot = eight({best_effort("a"), best_effort("b"), best_effort("c")});
  EXPECT_THAT(steps(arbitrate(snapshot, {pin("a", "0-1"), evict("c"), evict("a"), evict("b")}, {})),
              ElementsAre("evict c", "evict a", "evict b", "pin a"));
}

TEST(ArbiterOrder, PrioritiesOfGroupsComeAfterPinsOfServicesAndBeforeThoseOfBestEffortWork) {
  auto snapshot = eight({pinned(best_effort("batch"), "4-5"), latency_sensitive("web", 2)});
  snapshot.groups = {{.id = "batch"}, {.id = "others.slice"}};
  const auto change = [](const std::string& group, bool wanted) {
    return model::Action{.what = wanted ? model::Action::What(model::Set{group, model::LowPriority::idle})
                                        : model::GiveBack{group, model::Attribute::cpu_idle},
                         .policy = "interference",
                         .decision = {},
                         .reason = "r"};
  };
  EXPECT_THAT(steps(arbitrate(snapshot,
                              {pin("batch", "4-7"), change("batch", true), change("others.slice", false),
                               change("unknown.slice", true), pin("web", "0-1")},
                              {})),
              ElementsAre("pin web", "set-cpu-priority batch", "set-cpu-priority others.slice", "pin batch"));
}

TEST(ArbiterOrder, ABurstEndsBeforeAQuotaFallsBelowIt) {
  auto snapshot = eight({with_quota(latency_sensitive("web", 2), 2)});
  snapshot.workloads[0].others[model::Attribute::cpu_burst] = model::CpuBurst{200'000};
  const model::Action ends{.what = model::GiveBack{"web", model::Attribute::cpu_burst},
                           .policy = "quota",
                           .decision = {},
                           .reason = "r"};
  EXPECT_THAT(steps(arbitrate(snapshot, {quota("web", 1), ends}, {})),
              ElementsAre("set-cpu-burst web", "set-cpu-quota web"));
}

TEST(ArbiterOrder, MovesWhoLeavesBeforeWhoTakes) {
  const auto snapshot =
      eight({pinned(latency_sensitive("a", 2), "0-1"), pinned(latency_sensitive("b", 2), "2-3"),
             pinned(latency_sensitive("c", 2), "4-5")});
  EXPECT_THAT(pins(arbitrate(snapshot, {pin("a", "2-3"), pin("b", "4-5"), pin("c", "6-7")}, {})),
              ElementsAre("c=6-7", "b=4-5", "a=2-3"));
  EXPECT_THAT(pins(arbitrate(snapshot, {pin("a", "4-5"), unpin("c")}, {})), ElementsAre("c=", "a=4-5"));
}

TEST(ArbiterOrder, BreaksACircleAtTheLowestId) {
  const auto snapshot =
      eight({pinned(latency_sensitive("a", 2), "0-1"), pinned(latency_sensitive("b", 2), "2-3")});
  EXPECT_THAT(pins(arbitrate(snapshot, {pin("b", "0-1"), pin("a", "2-3")}, {})),
              ElementsAre("a=2-3", "b=0-1"));
}

TEST(ArbiterOrder, LiftsBestEffortPinsLast) {
  const auto snapshot =
      eight({pinned(best_effort("batch"), "2-7"), pinned(latency_sensitive("web", 2), "0-1")});
  EXPECT_THAT(pins(arbitrate(snapshot, {unpin("batch"), unpin("web")}, {})), ElementsAre("web=", "batch="));
}

namespace {

// Any action for any of a random node's workloads.
Actions random_proposals(const model::Snapshot& snapshot, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Actions proposals;
  for (std::size_t count = below(20); count > 0; --count) {
    const std::string id = snapshot.workloads[below(snapshot.workloads.size())].id;
    model::CpuSet set;
    for (const int cpu : snapshot.topology.usable()) {
      if (below(3) == 0) set.insert(cpu);
    }
    const double cores = static_cast<double>(below(160)) / 10;
    switch (below(7)) {
      case 0:
      case 1:
        proposals.push_back(pin(id, set.to_string()));
        break;
      case 2:
        proposals.push_back(unpin(id));
        break;
      case 3:
        proposals.push_back(quota(id, below(4) == 0 ? std::nullopt : std::optional(cores)));
        break;
      case 4:
        proposals.push_back(memory_high(id, below(1000000)));
        break;
      case 5:
        proposals.push_back(evict(id));
        break;
      default:
        proposals.push_back(advertise(below(2) == 0 ? model::Resource::cpu : model::Resource::memory));
    }
  }
  return proposals;
}

testing::RandomCase random_limits() {
  const std::uint64_t seed = *testing::any_seed();
  testing::RandomCase node = testing::random_case(seed);
  std::mt19937_64 random(seed);
  for (model::Workload& workload : node.snapshot.workloads) {
    if (random() % 2 == 0) workload.cpu_quota_cores = static_cast<double>(random() % 100) / 10;
    if (random() % 2 == 0) workload.memory_high_bytes = random() % 1000000;
  }
  return node;
}

const model::Workload& workload_of(const model::Snapshot& snapshot, const model::Action& action) {
  return *std::find_if(snapshot.workloads.begin(), snapshot.workloads.end(),
                       [&](const auto& workload) { return workload.id == *action.workload(); });
}

std::string attribute_of(const model::Action& action) {
  const std::string kind = action.kind();
  if (const auto* it = std::get_if<model::Advertise>(&action.what)) {
    return kind + std::to_string(static_cast<int>(it->resource));
  }
  return *action.workload() + (kind == "unpin" ? " pin" : " " + kind);
}

}  // namespace

RC_GTEST_PROP(ArbiterProperty, IgnoresTheOrderOfAllProposalsButEvictions, ()) {
  const testing::RandomCase node = random_limits();
  Actions proposals = random_proposals(node.snapshot, *testing::any_seed());
  const Actions actions = arbitrate(node.snapshot, proposals, node.settings);
  std::mt19937_64 random(*testing::any_seed());
  const auto is_eviction = [](const model::Action& it) {
    return std::holds_alternative<model::Evict>(it.what);
  };
  const auto others = std::stable_partition(proposals.begin(), proposals.end(), is_eviction);
  std::shuffle(others, proposals.end(), random);
  RC_ASSERT(arbitrate(node.snapshot, proposals, node.settings) == actions);
  RC_ASSERT(arbitrate(node.snapshot, actions, node.settings).size() == actions.size());
}

RC_GTEST_PROP(ArbiterProperty, GivesOneNewValuePerAttributeUnderItsOwnId, ()) {
  const testing::RandomCase node = random_limits();
  const Actions actions =
      arbitrate(node.snapshot, random_proposals(node.snapshot, *testing::any_seed()), node.settings);
  std::set<std::string> attributes;
  std::set<std::string> decisions;
  for (const model::Action& action : actions) {
    RC_ASSERT(attributes.insert(attribute_of(action)).second);
    RC_ASSERT(decisions.insert(action.decision).second);
    if (const auto* it = action.sets<model::CpuSet>()) {
      RC_ASSERT(!it->empty());
      RC_ASSERT(*it != workload_of(node.snapshot, action).cpus);
    }
  }
}

RC_GTEST_PROP(ArbiterProperty, NeverRaisesABestEffortQuotaFasterThanAllowed, ()) {
  testing::RandomCase node = random_limits();
  node.settings.safety.be_quota_rise = static_cast<double>(*rc::gen::inRange(0, 30)) / 100;
  const model::CpuSet& usable = node.snapshot.topology.usable();
  model::CpuSet open = usable;
  if (node.settings.interference.reserved == Reserved::strict) {
    for (const int cpu : usable& node.settings.interference.reserved_cpus) {
      const auto& owned = node.snapshot.owned_cpus;
      const bool is_owned = std::any_of(owned.begin(), owned.end(),
                                        [&](const model::OwnedCpus& it) { return it.cpus.contains(cpu); });
      if (!is_owned) open -= {cpu};
    }
  }
  const auto cores = static_cast<double>((open.empty() ? usable : open).size());
  for (const model::Action& action :
       arbitrate(node.snapshot, random_proposals(node.snapshot, *testing::any_seed()), node.settings)) {
    const auto* it = action.sets<model::CpuQuota>();
    if (it == nullptr) continue;
    const model::Workload& workload = workload_of(node.snapshot, action);
    if (workload.workload_class != model::WorkloadClass::best_effort || !workload.cpu_quota_cores) continue;
    // A limit beyond the node's size limits nothing.
    const double rise = std::min(it->cores.value_or(cores), cores) - *workload.cpu_quota_cores;
    // The rise is added to the quota, and taken off it again here.
    const double most = node.settings.safety.be_quota_rise * cores;
    RC_ASSERT(rise <= most + berth::testing::rounding(4, most + *workload.cpu_quota_cores));
  }
}

RC_GTEST_PROP(ArbiterProperty, NeverMovesAPinTwiceWithinTheCoolDownUnlessItIsBroken, ()) {
  testing::RandomCase node = random_limits();
  node.settings.safety.repin_cooldown_s = 10;
  for (const model::Action& action :
       arbitrate(node.snapshot, random_proposals(node.snapshot, *testing::any_seed()), node.settings)) {
    const auto* it = action.sets<model::CpuSet>();
    if (it == nullptr) continue;
    const model::Workload& workload = workload_of(node.snapshot, action);
    if (workload.workload_class != model::WorkloadClass::latency_sensitive || !workload.pinned_at) continue;
    const double age = node.snapshot.time - *workload.pinned_at;
    if (age < 0 || age >= 10) continue;
    const model::CpuSet& held = workload.cpus;
    const bool in_place = held.is_subset_of(*it) || it->is_subset_of(held);
    const bool sound = held.size() == static_cast<std::size_t>(std::max(0, workload.vcpus.value_or(0))) &&
                       held.is_subset_of(node.snapshot.topology.usable()) &&
                       !held.intersects(node.settings.interference.reserved_cpus) &&
                       (!workload.allowed_cpus || held.is_subset_of(*workload.allowed_cpus)) &&
                       held.size() == 1;
    bool shared = false;
    for (const model::Workload& other : node.snapshot.workloads) {
      shared = shared || (other.id != workload.id && other.workload_class == workload.workload_class &&
                          other.cpus.intersects(held));
    }
    // Pins of one vCPU only: these lie in one domain without further asking.
    RC_ASSERT((in_place || !sound || shared));
  }
}

TEST(ArbiterMerge, KeepsOversellingsEvictionsEvenOfTheSameWorkload) {
  const model::Snapshot snapshot = eight({best_effort("a"), best_effort("b")});
  const Actions actions = arbitrate(snapshot, {evict("a"), evict("a", "oversell"), evict("b", "oversell")},
                                    PolicySettings{}, false, {});
  ASSERT_EQ(steps(actions), (std::vector<std::string>{"evict a", "evict b"}));
  for (const model::Action& action : actions) EXPECT_EQ(action.policy, "oversell");
}

}  // namespace berth::policies
