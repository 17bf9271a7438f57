// SPDX-License-Identifier: Apache-2.0
// Where `optimal` places and moves latency-sensitive instances, by hand.
#include "policies/arbiter.h"
#include "policies/decide.h"
#include "policies/explain.h"
#include "policies/interference/policy.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/placement/gpu_hosts.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

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

constexpr double kNoCoolDown = 0;

InterferenceSettings optimal_search() { return {.search = Search::optimal}; }

// "hot" suffers and disturbs much, "cold" hardly at all; only on shared cores.
void add_services(model::Snapshot& snapshot) {
  snapshot.services["hot"] = {.pressure = 0.9, .model = model::InterferenceModel{.b0 = 0, .k1 = 1, .k2 = 0}};
  snapshot.services["cold"] = {.pressure = 0.1,
                               .model = model::InterferenceModel{.b0 = 0, .k1 = 0.1, .k2 = 0}};
}

model::Workload of_service(const std::string& service, model::Workload workload) {
  workload.service = service;
  return workload;
}

// Four cores of two threads, vCPU c on core c mod 4. Two instances are siblings, though three cores are idle.
model::Snapshot siblings() {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4, .threads_per_core = 2}));
  snapshot.services["hot"] = {.pressure = 0.8,
                              .model = model::InterferenceModel{.b0 = 0, .k1 = 0.4, .k2 = 0.1}};
  snapshot.workloads = {of_service("hot", pinned(latency_sensitive("a", 1, 0), "0")),
                        of_service("hot", pinned(latency_sensitive("b", 1, 1), "4"))};
  return snapshot;
}

// Three cores of two threads. The last one is reserved. Two hot instances share a core, two cold ones
// another.
model::Snapshot two_pairs() {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 3, .threads_per_core = 2}));
  add_services(snapshot);
  snapshot.workloads = {of_service("hot", pinned(latency_sensitive("h1", 1, 0), "0")),
                        of_service("hot", pinned(latency_sensitive("h2", 1, 1), "3")),
                        of_service("cold", pinned(latency_sensitive("c1", 1, 2), "1")),
                        of_service("cold", pinned(latency_sensitive("c2", 1, 3), "4"))};
  return snapshot;
}

InterferenceSettings two_pairs_settings() {
  InterferenceSettings settings = optimal_search();
  settings.reserved_cpus = cpus("2,5");
  settings.reserved = Reserved::shared;
  return settings;
}

// Three LLC domains of two cores without SMT.
model::Snapshot three_small_domains() {
  return snapshot_of(host({.llcs_per_socket = 3, .cores_per_llc = 2, .threads_per_core = 1}));
}

}  // namespace

TEST(Optimal, FindsTheWorkedExampleOfTheWindowSearchBest) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4, .threads_per_core = 2}));
  snapshot.services["hot"] = {.pressure = 0.8,
                              .model = model::InterferenceModel{.b0 = 0, .k1 = 0.4, .k2 = 0.1}};
  snapshot.services["cold"] = {.pressure = 0.2,
                               .model = model::InterferenceModel{.b0 = 0, .k1 = 0.2, .k2 = 0.05}};
  snapshot.workloads = {of_service("hot", latency_sensitive("a", 2, 0)),
                        of_service("hot", latency_sensitive("b", 2, 1)),
                        of_service("cold", latency_sensitive("c", 2, 2))};
  const auto findings = propose_pins(snapshot, optimal_search()).findings;
  EXPECT_DOUBLE_EQ(findings.score_node, 0.0875);
  EXPECT_DOUBLE_EQ(findings.lower_bound.value(), 0.0875);
  EXPECT_DOUBLE_EQ(findings.gap.value(), 0);
  EXPECT_EQ(findings.search, "optimal");
  EXPECT_EQ(findings.search_reason,
            "score_node 0.0875, 0.0875 by window: no placement of these instances has a lower one; no pinned "
            "instance may move now");
}

TEST(Optimal, PlacesNewInstancesTogetherNotOneAfterTheOther) {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 2, .threads_per_core = 2}));
  add_services(snapshot);
  // By window x and y get a core each, and z is left with the second thread of x's core.
  snapshot.workloads = {of_service("hot", latency_sensitive("x", 1, 0)),
                        of_service("cold", latency_sensitive("y", 1, 1)),
                        of_service("hot", latency_sensitive("z", 1, 2))};
  const auto by_window = propose_pins(snapshot, {}).findings;
  EXPECT_DOUBLE_EQ(by_window.score_node, (0.9 + 0.9) / 4);
  const auto proposal = propose_pins(snapshot, optimal_search());
  EXPECT_DOUBLE_EQ(proposal.findings.score_node, (1 * 0.1 + 0.1 * 0.9) / 4);
  EXPECT_DOUBLE_EQ(proposal.findings.gap.value(), 0);
  ASSERT_THAT(proposal.actions, SizeIs(3));
  for (const model::Action& action : proposal.actions) {
    EXPECT_THAT(action.reason, HasSubstr("as one of 3 new instances whose places together give score_node "
                                         "0.0475 against 0.45 by window"));
  }
}

TEST(Optimal, FindsRoomThatTheWindowSearchHasWasted) {
  model::Snapshot snapshot = three_small_domains();
  snapshot.workloads = {latency_sensitive("a", 1, 0), latency_sensitive("b", 1, 1),
                        latency_sensitive("c", 1, 2), latency_sensitive("d", 2, 3)};
  EXPECT_THAT(propose_pins(snapshot, {}).findings.unplaceable, SizeIs(1));
  const auto findings = propose_pins(snapshot, optimal_search()).findings;
  EXPECT_THAT(findings.unplaceable, IsEmpty());
  EXPECT_THAT(findings.instances, SizeIs(4));
}

TEST(Optimal, MovesNoStandingInstanceToMakeRoom) {
  model::Snapshot snapshot = three_small_domains();
  snapshot.workloads = {pinned(latency_sensitive("a", 1, 0), "0"), pinned(latency_sensitive("b", 1, 1), "2"),
                        pinned(latency_sensitive("c", 1, 2), "4"), latency_sensitive("d", 2, 3)};
  const auto proposal = propose_pins(snapshot, optimal_search());
  ASSERT_THAT(proposal.findings.unplaceable, SizeIs(1));
  EXPECT_EQ(proposal.findings.unplaceable.front().workload, "d");
  EXPECT_THAT(proposal.findings.unplaceable.front().reason, HasSubstr("LLC 0 has the most free, 1 of 2"));
  EXPECT_THAT(pins(proposal.actions), ElementsAre("d=1,3,5")) << "off the vCPUs of the others";
}

TEST(Optimal, KeepsThePlaceThatAnAdmissionTold) {
  // a comes, and was told the second thread of b's core, although three cores are idle.
  model::Snapshot snapshot = siblings();
  snapshot.workloads[0].cpus = {};
  snapshot.workloads[0].told_cpus = cpus("0");
  InterferenceSettings settings = optimal_search();
  settings.max_moves = 0;
  const auto proposal = propose_pins(snapshot, settings);
  EXPECT_THAT(pins(proposal.actions), ElementsAre("a=0"));
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("as its admission told"));
  // b may make way, as for any pin.
  EXPECT_THAT(propose_pins(snapshot, optimal_search()).findings.moved, ElementsAre("b"));
  EXPECT_EQ(propose_pins(snapshot, optimal_search()).findings.instances.at("a").cpus, cpus("0"));
  // An instance that comes with a is not given a's place, although that is the first one.
  snapshot.workloads[1].cpus = {};
  EXPECT_EQ(propose_pins(snapshot, optimal_search()).findings.instances.at("a").cpus, cpus("0"));
}

TEST(Optimal, KeepsAnInstanceNearItsGpus) {
  // "train" has a GPU of the second socket, vCPUs 4-7 and 12-15. Two hot instances crowd that socket.
  model::Snapshot snapshot = testing::gpu_host("a", {testing::gpu("g0", 1)});
  add_services(snapshot);
  snapshot.workloads = {of_service("hot", pinned(latency_sensitive("h1", 2, 0), "4-5")),
                        of_service("hot", pinned(latency_sensitive("h2", 2, 1), "6-7")),
                        of_service("hot", latency_sensitive("train", 2, 2))};
  for (model::Workload& workload : snapshot.workloads) workload.pinned_at = snapshot.time;
  const auto place = [&] {
    return propose_pins(snapshot, optimal_search(), {}, {}, 10).findings.instances.at("train").cpus;
  };
  EXPECT_TRUE(place().is_subset_of(cpus("0-3,8-11"))) << place().to_string();
  snapshot.workloads[2].gpus = {"g0"};
  EXPECT_TRUE(place().is_subset_of(cpus("12-15"))) << place().to_string();
  // Once it is pinned it stays, whatever a move would gain.
  snapshot.workloads[2] = pinned(snapshot.workloads[2], "12-13");
  snapshot.workloads[2].pinned_at = snapshot.time - 60;
  EXPECT_EQ(place(), cpus("12-13"));
  snapshot.workloads[2].gpus = {};
  EXPECT_NE(place(), cpus("12-13"));
}

TEST(OptimalMoves, MovesAPinnedInstanceToABetterPlace) {
  const auto proposal = propose_pins(siblings(), optimal_search());
  ASSERT_THAT(proposal.actions, SizeIs(1));
  // Both: 0.4 x 0.8 on the core before, 0.1 x 0.8 / 6 in the domain after.
  EXPECT_NEAR(proposal.findings.score_node, 2 * 0.1 * 0.8 / 6 / 8, 1e-12);
  EXPECT_THAT(proposal.findings.moved, SizeIs(1));
  EXPECT_EQ(*proposal.actions.front().workload(), proposal.findings.moved.front());
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("moved from "));
  EXPECT_THAT(
      proposal.actions.front().reason,
      HasSubstr(" of LLC 0: score_node falls from 0.08 to 0.003333 (95.8 %, min_gain 5 %) by 1 move of "
                "at most 2 in a round"));
  EXPECT_THAT(
      proposal.findings.search_reason,
      HasSubstr("1 of 2 instances that may move do so: score_node falls from 0.08 to 0.003333 (95.8 %)"));
}

TEST(OptimalMoves, MovesNothingForLessThanTheLeastGain) {
  InterferenceSettings settings = optimal_search();
  settings.min_gain = 0.96;
  const auto proposal = propose_pins(siblings(), settings);
  EXPECT_THAT(proposal.actions, IsEmpty());
  EXPECT_THAT(proposal.findings.search_reason,
              HasSubstr("no pinned instance moves: the bound shows that no 2 moves would lower score_node by "
                        "min_gain (96 %)"));
  // The bound still tells what a better placement would save.
  EXPECT_NEAR(proposal.findings.gap.value(), 1 - 0.1 / 6 / 0.4, 1e-9);
  settings.min_gain = 0.95;
  EXPECT_THAT(propose_pins(siblings(), settings).actions, SizeIs(1));
}

TEST(OptimalMoves, MovesNoMoreThanAllowedInARound) {
  InterferenceSettings settings = two_pairs_settings();
  settings.max_moves = 1;
  EXPECT_THAT(propose_pins(two_pairs(), settings).actions, IsEmpty());
  settings.max_moves = 2;
  const auto proposal = propose_pins(two_pairs(), settings);
  EXPECT_THAT(proposal.findings.moved, SizeIs(2));
  // Each core has a hot and a cold one: 1 x 0.1 + 0.1 x 0.9.
  EXPECT_DOUBLE_EQ(proposal.findings.score_node, 2 * 0.19 / 6);
  settings.max_moves = 0;
  const auto none = propose_pins(two_pairs(), settings).findings;
  EXPECT_THAT(none.moved, IsEmpty());
  EXPECT_THAT(none.search_reason, HasSubstr("no pinned instance moves, because max_moves is 0"));
}

TEST(OptimalMoves, TakesTheBestGainForEachMoveFirst) {
  // a suffers from b on its core much more than c from d on theirs. One core is idle.
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4, .threads_per_core = 2}));
  add_services(snapshot);
  snapshot.workloads = {of_service("hot", pinned(latency_sensitive("a", 1, 0), "0")),
                        of_service("hot", pinned(latency_sensitive("b", 1, 1), "4")),
                        of_service("cold", pinned(latency_sensitive("c", 1, 2), "1")),
                        of_service("cold", pinned(latency_sensitive("d", 1, 3), "5"))};
  InterferenceSettings settings = optimal_search();
  settings.min_gain = 0.02;
  // The first move saves 1.8 of 1.82. The second one saves all of the remaining 0.02, which also counts.
  EXPECT_THAT(propose_pins(snapshot, settings).findings.moved, SizeIs(2));
  settings.max_moves = 1;
  const auto findings = propose_pins(snapshot, settings).findings;
  ASSERT_THAT(findings.moved, SizeIs(1));
  EXPECT_TRUE(findings.moved.front() == "a" || findings.moved.front() == "b");
}

TEST(OptimalMoves, WaitsForTheCoolDown) {
  model::Snapshot snapshot = siblings();
  for (model::Workload& workload : snapshot.workloads) workload.pinned_at = snapshot.time - 9;
  PolicySettings settings;
  settings.interference = optimal_search();
  const model::Plan early = decide(snapshot, settings);
  EXPECT_THAT(early.actions, IsEmpty());
  EXPECT_THAT(early.findings.interference->search_reason, HasSubstr("no pinned instance may move now"));
  // The search does not choose the one that cools down, so that the other one moves at once.
  snapshot.workloads[1].pinned_at = snapshot.time - 10;
  EXPECT_THAT(decide(snapshot, settings).findings.interference->moved, ElementsAre("b"));
  EXPECT_THAT(pins(decide(snapshot, settings)), SizeIs(1));
  settings.safety.repin_cooldown_s = 11;
  EXPECT_THAT(decide(snapshot, settings).actions, IsEmpty());
}

TEST(OptimalMoves, AreHeldByTheArbiterToo) {
  model::Snapshot snapshot = siblings();
  for (model::Workload& workload : snapshot.workloads) workload.pinned_at = snapshot.time - 9;
  const auto proposed = propose_pins(snapshot, optimal_search(), {}, {}, kNoCoolDown).actions;
  ASSERT_THAT(proposed, SizeIs(1));
  EXPECT_THAT(arbitrate(snapshot, proposed, {}), IsEmpty());
  snapshot.time += 1;
  EXPECT_THAT(arbitrate(snapshot, proposed, {}), SizeIs(1));
}

TEST(OptimalMoves, EndOnceNothingGainsEnough) {
  model::Snapshot snapshot = two_pairs();
  PolicySettings settings;
  settings.interference = two_pairs_settings();
  testing::apply(decide(snapshot, settings), snapshot);
  EXPECT_THAT(decide(snapshot, settings).actions, IsEmpty());
}

TEST(OptimalMoves, LeavesGrownInstancesWhereTheyAre) {
  model::Snapshot snapshot = siblings();
  snapshot.workloads[0].cpus = cpus("0-1");
  snapshot.workloads[1].cpus = cpus("4-5");
  const GrownRequests grown{{"a", 2}, {"b", 2}};
  EXPECT_THAT(propose_pins(snapshot, optimal_search(), grown).actions, IsEmpty());
}

TEST(OptimalMoves, MovesNothingForPendingWork) {
  // A third hot instance would like b's core.
  model::Snapshot snapshot = siblings();
  snapshot.workloads = {of_service("hot", pinned(latency_sensitive("a", 1, 0), "0")),
                        of_service("hot", pinned(latency_sensitive("b", 1, 1), "1"))};
  model::PendingWorkload& pending = snapshot.pending.emplace_back();
  pending.id = "new";
  pending.service = "hot";
  pending.vcpus = 4;
  pending.isolation = model::Isolation::vcpus;
  const auto by_window = propose_pins(snapshot, {});
  const auto proposal = propose_pins(snapshot, optimal_search());
  EXPECT_THAT(proposal.findings.moved, IsEmpty());
  EXPECT_EQ(proposal.findings.instances.at("new").cpus, by_window.findings.instances.at("new").cpus);
}

TEST(OptimalMoves, AreExplained) {
  model::Snapshot snapshot = siblings();
  PolicySettings settings;
  settings.interference = optimal_search();
  const model::Plan plan = decide(snapshot, settings);
  const auto& findings = *plan.findings.interference;
  ASSERT_THAT(findings.moved, SizeIs(1));
  const auto explained = explain_workload(snapshot, plan, settings, findings.moved.front()).value();
  ASSERT_TRUE(explained.pin);
  EXPECT_EQ(explained.pin->search_reason, findings.search_reason);
  ASSERT_THAT(explained.actions, SizeIs(1));
  EXPECT_THAT(explained.actions.front().reason, HasSubstr("score_node falls from"));
}

TEST(OptimalHybrid, ServicesFillTheFastCoresFirstAndNeverMixKinds) {
  model::Snapshot snapshot = snapshot_of(testing::hybrid_host());
  snapshot.workloads = {latency_sensitive("a", 2, 0), latency_sensitive("b", 3, 1),
                        latency_sensitive("c", 2, 2), testing::best_effort("batch", 1)};
  const auto findings = propose_pins(snapshot, optimal_search()).findings;
  // By score, c would be better on the slow core that is idle than on the siblings of a.
  EXPECT_TRUE(findings.instances.at("a").cpus.is_subset_of(cpus("0-3")));
  EXPECT_TRUE(findings.instances.at("c").cpus.is_subset_of(cpus("0-3")));
  EXPECT_TRUE(findings.instances.at("b").cpus.is_subset_of(cpus("4-7")));
  EXPECT_EQ(findings.best_effort.cpus.size(), 1U);
}

TEST(OptimalHybrid, AStandingPinMovesToFasterCoresOnceTheyAreFree) {
  model::Snapshot snapshot = snapshot_of(testing::hybrid_host());
  snapshot.workloads = {pinned(latency_sensitive("a", 2, 0), "4-5"),
                        pinned(latency_sensitive("b", 2, 1), "6-7")};
  InterferenceSettings settings = optimal_search();
  const InterferenceProposal proposal = propose_pins(snapshot, settings, {}, {}, kNoCoolDown);
  EXPECT_THAT(proposal.findings.moved, ElementsAre("a", "b"));
  ASSERT_THAT(proposal.actions, SizeIs(2));
  EXPECT_THAT(proposal.actions.front().reason, HasSubstr("moved from 4-5 to cores with more capacity"));
  for (const char* id : {"a", "b"})
    EXPECT_TRUE(proposal.findings.instances.at(id).cpus.is_subset_of(cpus("0-3"))) << id;
  // Each counts as a move, the oldest first.
  settings.max_moves = 1;
  EXPECT_THAT(propose_pins(snapshot, settings, {}, {}, kNoCoolDown).findings.moved, ElementsAre("a"));
  settings.max_moves = 0;
  EXPECT_THAT(pins(propose_pins(snapshot, settings, {}, {}, kNoCoolDown).actions), IsEmpty());
  // One that cools down stays, and none moves to a slower core.
  snapshot.workloads[0].pinned_at = snapshot.time - 1;
  settings.max_moves = 2;
  EXPECT_THAT(propose_pins(snapshot, settings, {}, {}, 10).findings.moved, ElementsAre("b"));
  snapshot.workloads = {pinned(latency_sensitive("a", 2, 0), "0-1"),
                        pinned(latency_sensitive("b", 2, 1), "2-3")};
  for (const auto& [id, it] : propose_pins(snapshot, settings, {}, {}, kNoCoolDown).findings.instances)
    EXPECT_TRUE(it.cpus.is_subset_of(cpus("0-3"))) << id;
}

}  // namespace berth::policies
