// SPDX-License-Identifier: Apache-2.0
// The score of the same load if unpinned, by hand; window_property_test compares it with a restatement.
#include "policies/interference/policy.h"
#include "tests/unit/policies/hosts.h"

#include <optional>

#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using testing::best_effort;
using testing::host;
using testing::latency_sensitive;
using testing::snapshot_of;

// a and b are hot and c is cold, on four cores with two threads each.
model::Snapshot worked_example() {
  model::Snapshot snapshot = snapshot_of(host({.cores_per_llc = 4, .threads_per_core = 2}));
  const model::ServiceProfile hot{.pressure = 0.8,
                                  .model = model::InterferenceModel{.b0 = 0, .k1 = 0.4, .k2 = 0.1}};
  snapshot.services["a"] = snapshot.services["b"] = hot;
  snapshot.services["c"] = {.pressure = 0.2,
                            .model = model::InterferenceModel{.b0 = 0, .k1 = 0.2, .k2 = 0.05}};
  snapshot.workloads = {latency_sensitive("a", 2, 0), latency_sensitive("b", 2, 1),
                        latency_sensitive("c", 2, 2)};
  return snapshot;
}

// One instance of two vCPUs beside `busy_cores` of best-effort work.
model::InterferenceFindings beside_batch(double busy_cores) {
  model::Snapshot snapshot = worked_example();
  snapshot.workloads = {latency_sensitive("a", 2), best_effort("batch", busy_cores)};
  return propose_pins(snapshot, {}).findings;
}

std::optional<double> unpinned(const model::Snapshot& snapshot, Weighting weighting = Weighting::overlap) {
  return propose_pins(snapshot, {.weighting = weighting}).findings.score_unpinned;
}

}  // namespace

TEST(Unpinned, ScoresTheWorkedExampleByOverlap) {
  // The mean pressure is (1.6 + 1.6 + 0.4) / 8 = 0.45, on the one sibling and everywhere else.
  EXPECT_DOUBLE_EQ(unpinned(worked_example()).value(), 2 * (0.225 + 0.225 + 0.1125) / 8);
}

TEST(Unpinned, ScoresTheWorkedExampleByRequest) {
  EXPECT_DOUBLE_EQ(unpinned(worked_example(), Weighting::request).value(), 2 * (0.2 + 0.2 + 0.16) / 8);
}

TEST(Unpinned, IsNotKnownWhereNothingIsPlaced) {
  model::Snapshot snapshot = worked_example();
  snapshot.workloads = {best_effort("batch", 3), latency_sensitive("huge", 9)};
  EXPECT_EQ(unpinned(snapshot), std::nullopt);
}

TEST(Unpinned, CountsOnlyWhatThePlanPlaces) {
  model::Snapshot snapshot = worked_example();
  const auto before = unpinned(snapshot);
  snapshot.services["huge"].pressure = 1.0;
  snapshot.workloads.push_back(latency_sensitive("huge", 9, 3));
  EXPECT_EQ(unpinned(snapshot), before);
}

TEST(Unpinned, MayBeLessWhereBestEffortWorkIsCrowdedOntoTheSiblings) {
  // Six busy cores on the six vCPUs left: 0.4 + 0.1 for a; spread over all eight, 0.95 of it.
  const auto crowded = beside_batch(6);
  EXPECT_DOUBLE_EQ(crowded.score_node, 2 * 0.5 / 8);
  EXPECT_DOUBLE_EQ(crowded.score_unpinned.value(), 2 * 0.5 * 0.95 / 8);
  EXPECT_LT(crowded.score_unpinned.value(), crowded.score_node);
}

TEST(Unpinned, CountsNoMoreLoadThanTheNodeHasVcpus) {
  EXPECT_DOUBLE_EQ(beside_batch(1000).score_unpinned.value(), 2 * 0.5 / 8);
}

TEST(Unpinned, HasNoSiblingsToSufferFromWithoutSmt) {
  model::Snapshot snapshot = worked_example();
  snapshot.topology = host({.cores_per_llc = 8, .threads_per_core = 1});
  EXPECT_DOUBLE_EQ(unpinned(snapshot).value(), 2 * (0.1 + 0.1 + 0.05) * 0.45 / 8);
  // Others' means are 0.5, 0.5 and 0.8.
  EXPECT_DOUBLE_EQ(unpinned(snapshot, Weighting::request).value(), 2 * (0.05 + 0.05 + 0.04) / 8);
}

TEST(Unpinned, HasNoDomainToSufferFromWhereACoreIsADomain) {
  model::Snapshot snapshot = worked_example();
  snapshot.topology = host({.llcs_per_socket = 4, .cores_per_llc = 1, .threads_per_core = 2});
  EXPECT_DOUBLE_EQ(unpinned(snapshot).value(), 2 * (0.4 + 0.4 + 0.2) * 0.45 / 8);
}

}  // namespace berth::policies
