// SPDX-License-Identifier: Apache-2.0
// Pins that grow for a straggler, and shrink again, where they are.
#include "policies/interference/policy.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/interference/random_node.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using testing::best_effort;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::latency_sensitive;
using testing::pinned;
using testing::pins;

// Cores 0..3 with two threads; vCPU c is on core c mod 4.
model::Snapshot on_one_llc(std::vector<model::Workload> workloads) {
  model::Snapshot snapshot = testing::snapshot_of(testing::host({.cores_per_llc = 4}));
  snapshot.workloads = std::move(workloads);
  return snapshot;
}

InterferenceProposal grown(const model::Snapshot& snapshot, const GrownRequests& requests,
                           const InterferenceSettings& settings = {}) {
  return propose_pins(snapshot, settings, requests);
}

}  // namespace

TEST(Resize, AGrownPinKeepsItsVcpusAndGetsFreeOnes) {
  InterferenceSettings settings;
  settings.weighting = Weighting::request;
  // Its own siblings are free under this weighting, those of b would cost both.
  const auto proposal = grown(
      on_one_llc({pinned(latency_sensitive("a", 2), "2-3"), pinned(latency_sensitive("b", 2, 1), "0-1")}),
      {{"a", 4}}, settings);
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a=2-3,6-7"));
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("grows from 2-3 to 2-3,6-7 in place"));
}

TEST(Resize, BestEffortWorkMakesRoom) {
  const auto proposal =
      grown(on_one_llc({pinned(best_effort("batch"), "2-7"), pinned(latency_sensitive("web", 2), "0-1")}),
            {{"web", 3}});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("web=0-2", "batch=3-7"));
}

TEST(Resize, GrowsByAsManyAsAreFree) {
  const auto proposal = grown(
      on_one_llc({pinned(latency_sensitive("a", 2), "0-1"), pinned(latency_sensitive("b", 4, 1), "2-3,6-7")}),
      {{"a", 6}});
  // One of eight must stay without an owner.
  ASSERT_EQ(proposal.actions.size(), 1U);
  EXPECT_EQ(proposal.findings.instances.at("a").cpus.size(), 3U);
  EXPECT_TRUE(testing::cpus("0-1").is_subset_of(proposal.findings.instances.at("a").cpus));
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("it asks 6 vCPUs, and LLC 0 has no more for it"));
}

TEST(Resize, WithNothingFreeItKeepsWhatItHas) {
  const auto proposal = grown(
      on_one_llc({pinned(latency_sensitive("a", 2), "0-1"), pinned(latency_sensitive("b", 5, 1), "2-6")}),
      {{"a", 4}});
  EXPECT_THAT(pins(proposal.actions), IsEmpty());
  EXPECT_EQ(proposal.findings.instances.at("a").cpus, testing::cpus("0-1"));
}

TEST(Resize, DoesNotLeaveItsDomainOrWhatIsPermitted) {
  model::Snapshot snapshot =
      testing::snapshot_of(testing::host({.llcs_per_socket = 2, .cores_per_llc = 2}));  // 0-1,4-5 and 2-3,6-7
  snapshot.workloads = {pinned(latency_sensitive("a", 2), "0-1")};
  snapshot.workloads.front().allowed_cpus = testing::cpus("0-4,6-7");
  const auto proposal = grown(snapshot, {{"a", 6}});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a=0-1,4"));
}

TEST(Resize, WhoeverGrowsTakesNothingFromAnotherThatGrows) {
  const auto proposal =
      grown(on_one_llc({pinned(latency_sensitive("a", 1), "0"), pinned(latency_sensitive("b", 1, 1), "1")}),
            {{"a", 4}, {"b", 4}});
  const auto& instances = proposal.findings.instances;
  EXPECT_EQ(instances.at("a").cpus.size(), 4U);
  EXPECT_EQ(instances.at("b").cpus.size(), 3U);
  EXPECT_FALSE(instances.at("a").cpus.intersects(instances.at("b").cpus));
  EXPECT_TRUE(instances.at("b").cpus.contains(1));
}

TEST(Resize, GrownIsGrownNextTimeToo) {
  model::Snapshot snapshot = on_one_llc({pinned(latency_sensitive("a", 2), "0-1,4-5")});
  EXPECT_THAT(pins(grown(snapshot, {{"a", 4}}).actions), IsEmpty());
}

TEST(Resize, ShrinksInPlaceOnceItAsksLess) {
  const auto proposal = grown(on_one_llc({pinned(latency_sensitive("a", 2), "0-1,4-5")}), {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a=0-1"));
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("shrinks from 0-1,4-5 to 0-1 in place"));
}

TEST(Resize, KeepsTheVcpusWithTheBestScore) {
  // b is on the sibling of vCPU 0, so a gives that one up.
  const auto proposal = grown(
      on_one_llc({pinned(latency_sensitive("a", 1), "0-1"), pinned(latency_sensitive("b", 1, 1), "4")}), {});
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a=1"));
}

TEST(Resize, WhatOneGivesUpAnotherMayGrowInto) {
  const auto proposal = grown(
      on_one_llc({pinned(latency_sensitive("a", 2), "0-1"), pinned(latency_sensitive("b", 1, 1), "2-7")}),
      {{"a", 4}});
  EXPECT_EQ(proposal.findings.instances.at("a").cpus.size(), 4U);
  EXPECT_EQ(proposal.findings.instances.at("b").cpus.size(), 1U);
}

TEST(Resize, AGrownPinThatDoesNotStandIsPlacedAnewAsDeclared) {
  InterferenceSettings settings;
  settings.reserved_cpus = testing::cpus("0");
  const auto proposal = grown(on_one_llc({pinned(latency_sensitive("a", 2), "0-1")}), {{"a", 4}}, settings);
  EXPECT_EQ(proposal.findings.instances.at("a").cpus.size(), 2U);
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("is no longer valid: vCPUs 0 are reserved"));
}

TEST(Resize, OfTwoThatOverlapTheOlderKeepsItsPlace) {
  const auto proposal = grown(
      on_one_llc({pinned(latency_sensitive("a", 1, 2), "0"), pinned(latency_sensitive("b", 1, 1), "0-1")}),
      {});
  EXPECT_TRUE(proposal.findings.instances.at("b").cpus.is_subset_of(testing::cpus("0-1")));
  EXPECT_FALSE(proposal.findings.instances.at("a").cpus.intersects(proposal.findings.instances.at("b").cpus));
}

RC_GTEST_PROP(ResizeProperty, GrownPinsKeepWhatTheyHaveAndGetAllThatIsFreeUpToTheirRequest, ()) {
  testing::RandomCase node = testing::random_case(*testing::any_seed());
  const InterferenceProposal before = propose_pins(node.snapshot, node.settings.interference);
  for (model::Workload& workload : node.snapshot.workloads) {
    const auto placed = before.findings.instances.find(workload.id);
    workload.cpus = placed == before.findings.instances.end() ? model::CpuSet() : placed->second.cpus;
    workload.force = true;  // a pin below its use would fall
  }
  std::mt19937_64 random(*testing::any_seed());
  GrownRequests requests;
  for (const model::Workload& workload : node.snapshot.workloads)
    if (workload.vcpus.value_or(0) > 0 && random() % 2 == 0)
      requests[workload.id] = *workload.vcpus + static_cast<int>(random() % 4);
  const auto after = propose_pins(node.snapshot, node.settings.interference, requests);
  model::CpuSet owned;
  for (const auto& [id, instance] : after.findings.instances) {
    RC_ASSERT(!owned.intersects(instance.cpus));
    owned |= instance.cpus;
  }
  for (const model::Workload& workload : node.snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::latency_sensitive || workload.cpus.empty()) continue;
    const model::CpuSet& cpus = after.findings.instances.at(workload.id).cpus;
    RC_ASSERT(workload.cpus.is_subset_of(cpus));
    const auto request = requests.find(workload.id);
    const int asked = request == requests.end() ? *workload.vcpus : request->second;
    RC_ASSERT(static_cast<int>(cpus.size()) <= std::max(asked, *workload.vcpus));
    RC_ASSERT((!workload.allowed_cpus || cpus.is_subset_of(*workload.allowed_cpus)));
    RC_ASSERT(!cpus.intersects(node.settings.interference.reserved_cpus));
  }
  const auto least = static_cast<std::size_t>(std::max(1, node.settings.interference.be_min_cpus));
  RC_ASSERT(after.findings.best_effort.cpus.size() >=
            std::min(least, testing::given_out(node.snapshot.topology, node.settings.interference).size()));
  // And back: a workload that asks what it declares again is where it may stay.
  for (model::Workload& workload : node.snapshot.workloads) {
    const auto placed = after.findings.instances.find(workload.id);
    if (placed != after.findings.instances.end()) workload.cpus = placed->second.cpus;
  }
  const auto back = propose_pins(node.snapshot, node.settings.interference);
  for (const model::Workload& workload : node.snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::latency_sensitive || workload.cpus.empty()) continue;
    const model::CpuSet& cpus = back.findings.instances.at(workload.id).cpus;
    RC_ASSERT(cpus.is_subset_of(workload.cpus));
    RC_ASSERT(static_cast<int>(cpus.size()) == *workload.vcpus);
  }
}

}  // namespace berth::policies
