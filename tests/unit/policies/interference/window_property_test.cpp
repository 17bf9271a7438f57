// SPDX-License-Identifier: Apache-2.0
// `window` against its naive restatement, on random nodes.
#include "policies/interference/policy.h"
#include "tests/unit/policies/interference/naive.h"
#include "tests/unit/policies/interference/random_node.h"
#include "tests/unit/policies/seeds.h"
#include "tests/unit/rounding.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

// A score is k1 times the pressure of three siblings at most, and k2 times that of one vCPU, all of them 0
// to 1. It is made of sums over 144 vCPUs for each of 16 instances at most. Sums that one instance is taken
// out of again are as large as the number of vCPUs, but have 16 terms.
constexpr double kTolerance = berth::testing::rounding(2 * 144 * 16, 4);
static_assert(kTolerance > berth::testing::rounding(2 * 16, 144) && kTolerance < 1e-11);

naive::Cpus as_set(const model::CpuSet& cpus) { return {cpus.begin(), cpus.end()}; }
bool near(double a, double b) { return std::abs(a - b) <= kTolerance; }

bool spans(const model::Snapshot& snapshot, const InterferenceSettings& settings,
           const naive::Outcome& outcome) {
  const auto& domains = snapshot.topology.domains(settings.shared_domain);
  return std::any_of(outcome.placed.begin(), outcome.placed.end(), [&](const auto& placed) {
    return std::all_of(domains.begin(), domains.end(),
                       [&](const auto& domain) { return domain.cpus.size() < placed.second.size(); });
  });
}

void places_as_the_naive_restatement(const testing::RandomCase& node) {
  const auto expected = naive::place(node.snapshot, node.settings.interference);
  const auto findings = propose_pins(node.snapshot, node.settings.interference).findings;

  RC_CLASSIFY(!expected.unplaceable.empty(), "something unplaceable");
  RC_CLASSIFY(expected.placed.size() > 3, "more than three placed");
  RC_CLASSIFY(spans(node.snapshot, node.settings.interference, expected), "a request that spans domains");
  RC_ASSERT(findings.instances.size() == expected.placed.size());
  // Both take a window for better where its score is lower by more than 1e-9. Scores that are equal differ by
  // far less.
  for (const auto& [id, cpus] : expected.placed) {
    RC_ASSERT(findings.instances.contains(id));
    const model::PlacedInstance& instance = findings.instances.at(id);
    RC_ASSERT(as_set(instance.cpus) == cpus);
    const naive::Score& score = expected.scores.at(id);
    RC_ASSERT(near(instance.cpu_sc, score.cpu_sc));
    RC_ASSERT(near(instance.cpu_ss, score.cpu_ss));
    RC_ASSERT(near(instance.score, score.score));
  }
  RC_ASSERT(findings.unplaceable.size() == expected.unplaceable.size());
  for (const model::WorkloadFinding& finding : findings.unplaceable) {
    RC_ASSERT(expected.unplaceable.contains(finding.workload));
    RC_ASSERT(!finding.reason.empty());
  }
  RC_ASSERT(near(findings.score_node, expected.node));
  RC_ASSERT(findings.score_unpinned.has_value() == expected.node_unpinned.has_value());
  RC_ASSERT(near(findings.score_unpinned.value_or(0), expected.node_unpinned.value_or(0)));
  RC_ASSERT(findings.domains.size() == expected.domains.size());
  for (const auto& [id, score] : expected.domains) RC_ASSERT(near(findings.domains.at(id), score));
  RC_ASSERT(as_set(findings.best_effort.cpus) == expected.pool);
  RC_ASSERT(near(findings.best_effort.utilisation, expected.pool_utilisation));
}

}  // namespace

RC_GTEST_PROP(WindowProperty, PlacesAndScoresAsTheNaiveRestatement, ()) {
  places_as_the_naive_restatement(testing::random_case(*testing::any_seed()));
}

RC_GTEST_PROP(WindowProperty, PlacesOnHybridProcessorsAsTheNaiveRestatement, ()) {
  places_as_the_naive_restatement(testing::random_hybrid_case(*testing::any_seed()));
}

}  // namespace berth::policies
