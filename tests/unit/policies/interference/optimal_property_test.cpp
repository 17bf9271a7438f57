// SPDX-License-Identifier: Apache-2.0
// `optimal` against the exhaustive restatement on small nodes, and its parts on random nodes.
#include "policies/interference/policy.h"
#include "policies/vcpus/optimal/bound.h"
#include "policies/vcpus/optimal/exchanges.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/interference/exhaustive.h"
#include "tests/unit/policies/interference/problems.h"
#include "tests/unit/policies/interference/random_node.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

// The search leaves a placement that is better by less than kTieTotal, at each of its rounds. A layout
// carries its total on from exchange to exchange. For those roundings this is no strict bound: if all of a
// long series had the same sign, they could reach it.
constexpr double kTolerance = 1e-8;
constexpr double kCoolDown = 10;

bool near(double a, double b) { return std::abs(a - b) <= kTolerance; }

model::InterferenceFindings findings_of(const testing::RandomCase& node) {
  return propose_pins(node.snapshot, node.settings.interference, {}, {}, kCoolDown).findings;
}

std::set<std::string> ids_of(const model::InterferenceFindings& findings) {
  std::set<std::string> ids;
  for (const auto& [id, instance] : findings.instances) ids.insert(id);
  return ids;
}

std::set<std::string> ids_of(const naive::Outcome& outcome) {
  std::set<std::string> ids;
  for (const auto& [id, cpus] : outcome.placed) ids.insert(id);
  return ids;
}

// Of two sets of instances, the one is better that has the first one, in the order of serving, which the
// other lacks.
bool serves_better(const testing::RandomCase& node, const std::set<std::string>& a,
                   const std::set<std::string>& b) {
  for (const naive::Request& request : naive::requests(node.snapshot, node.settings.interference)) {
    if (a.contains(request.id) != b.contains(request.id)) return a.contains(request.id);
  }
  return false;
}

}  // namespace

RC_GTEST_PROP(OptimalProperty, EqualsTheExhaustiveSearchOnSmallNodes, ()) {
  const auto seed = *testing::any_seed();
  const testing::RandomCase node = testing::small_case(seed);
  const InterferenceSettings& settings = node.settings.interference;
  const model::InterferenceFindings findings = findings_of(node);
  const naive::Exhausted round = naive::play_round(node.snapshot, settings, kCoolDown);
  const naive::Outcome expected = naive::place_beside(node.snapshot, settings, round.placed);
  const naive::Outcome by_window = naive::place(node.snapshot, settings);
  RC_CLASSIFY(round.moves > 0, "something moves");
  RC_CLASSIFY(round.placed.size() > 2, "more than two instances");
  RC_CLASSIFY(serves_better(node, ids_of(expected), ids_of(by_window)), "the window search has no room");
  RC_CLASSIFY(expected.node < by_window.node - kTolerance, "better than the window search");

  std::set<std::string> served;
  for (const auto& [id, cpus] : round.placed) served.insert(id);
  const std::set<std::string> found = ids_of(findings);
  RC_ASSERT(std::includes(found.begin(), found.end(), served.begin(), served.end()));
  RC_ASSERT(findings.moved.size() <= static_cast<std::size_t>(settings.max_moves));
  // Others come after these. Of placements that are as good for these, one may have room for another instance
  // where the next has none.
  if (found == served && ids_of(expected) == served && !round.close)
    RC_ASSERT(near(findings.score_node, expected.node));
  // The bound is the best of all placements of these instances.
  const double least = naive::least_score(node.snapshot, settings, ids_of(findings));
  RC_ASSERT(findings.lower_bound.has_value());
  RC_ASSERT(near(*findings.lower_bound, findings.instances.empty() ? 0 : least));
  RC_ASSERT(*findings.lower_bound <= findings.score_node);
  const double gap =
      findings.score_node > 0 ? (findings.score_node - *findings.lower_bound) / findings.score_node : 0;
  RC_ASSERT(near(findings.gap.value(), gap));
}

RC_GTEST_PROP(OptimalProperty, ItsRelaxedBoundHoldsOnSmallNodes, ()) {
  const testing::RandomCase node = testing::small_case(*testing::any_seed());
  const testing::Problem problem(node.snapshot, node.settings.interference);
  std::set<std::string> placed;
  for (std::size_t i = 0; i < problem.by_window.size(); ++i) {
    if (problem.by_window[i].taken()) placed.insert(problem.ids[i]);
  }
  if (placed.empty()) return;
  // Also where work runs out.
  const auto effort = *rc::gen::element(optimal::Effort::quick, optimal::Effort::thorough);
  optimal::Work work(*rc::gen::inRange(0, 2) == 0 ? 1e9 : *rc::gen::inRange(0, 20));
  const double bound =
      optimal::lower_bound(*problem.ground, problem.by_window, effort, work) / problem.node.size();
  const double least = naive::least_score(node.snapshot, node.settings.interference, placed);
  RC_CLASSIFY(bound > 0.9 * least, "within 10 %");
  RC_CLASSIFY(least > 0, "not 0");
  RC_ASSERT(bound >= 0);
  RC_ASSERT(bound <= least + kTolerance);
}

RC_GTEST_PROP(OptimalProperty, IsNeverWorseThanTheWindowSearch, ()) {
  testing::RandomCase node = testing::random_case(*testing::any_seed());
  InterferenceSettings& settings = node.settings.interference;
  const naive::Outcome by_window = naive::place(node.snapshot, settings);
  settings.search = Search::optimal;
  settings.budget_s = 0.001 * *rc::gen::inRange(1, 5);
  const model::InterferenceFindings findings = findings_of(node);
  RC_ASSERT(*findings.lower_bound <= findings.score_node + kTolerance);
  if (ids_of(findings) == ids_of(by_window)) {
    RC_CLASSIFY(findings.score_node < by_window.node - kTolerance, "better");
    RC_ASSERT(findings.score_node <= by_window.node + kTolerance);
  } else {
    RC_CLASSIFY(true, "serves others");
    RC_ASSERT(serves_better(node, ids_of(findings), ids_of(by_window)));
  }
  // No placement that is known is below the bound.
  const naive::Outcome found = [&] {
    std::map<std::string, naive::Cpus> placed;
    for (const auto& [id, instance] : findings.instances)
      placed[id] = {instance.cpus.begin(), instance.cpus.end()};
    return naive::place_beside(node.snapshot, settings, placed);
  }();
  RC_ASSERT(near(found.node, findings.score_node));
  RC_ASSERT(findings == findings_of(node));
}

RC_GTEST_PROP(OptimalProperty, MovesFewPinsAndNoneThatCoolsDown, ()) {
  testing::RandomCase node = testing::random_case(*testing::any_seed());
  InterferenceSettings& settings = node.settings.interference;
  settings.search = Search::optimal;
  settings.budget_s = 0.002;
  settings.min_gain = 0.01 * *rc::gen::inRange(0, 20);
  settings.max_moves = *rc::gen::inRange(0, 4);
  const model::InterferenceFindings findings = findings_of(node);
  std::vector<std::string> moved;
  for (const naive::Request& request : naive::requests(node.snapshot, settings)) {
    if (request.kept.empty()) continue;
    const model::PlacedInstance& instance = findings.instances.at(request.id);
    if (naive::Cpus{instance.cpus.begin(), instance.cpus.end()} == request.kept) continue;
    moved.push_back(request.id);
    RC_ASSERT(!request.resized);
    const double age = node.snapshot.time - request.pinned_at.value_or(-1e9);
    RC_ASSERT((age < 0 || age >= kCoolDown));
  }
  std::sort(moved.begin(), moved.end());
  RC_CLASSIFY(!moved.empty(), "something moves");
  RC_ASSERT(moved == findings.moved);
  RC_ASSERT(moved.size() <= static_cast<std::size_t>(settings.max_moves));
}

RC_GTEST_PROP(LayoutProperty, KnowsTheScoreAfterAnyExchanges, ()) {
  const auto seed = *testing::any_seed();
  const testing::RandomCase node = testing::random_case(seed);
  const testing::Problem problem(node.snapshot, node.settings.interference);
  const auto layout = optimal::make_layout(*problem.ground);
  layout->set(problem.by_window);
  optimal::Exchanges exchanges(*layout);
  std::vector<int> tenants;
  for (int i = 0; i < static_cast<int>(problem.by_window.size()); ++i) {
    if (!problem.by_window[static_cast<std::size_t>(i)].taken()) continue;
    exchanges.open(i);
    tenants.push_back(i);
  }
  const std::vector<int> available = exchanges.available();
  testing::Draws draws(seed);
  const auto any_of = [&](const std::vector<int>& list) {
    return list[static_cast<std::size_t>(draws.number(0, static_cast<int>(list.size()) - 1))];
  };
  std::vector<optimal::Exchange> pairs;
  int made = 0;
  const auto exact = [&] { return problem.ground->score(layout->places()) * problem.node.size(); };
  RC_ASSERT(near(layout->total(), exact()));
  for (int i = 0; i < 60 && !tenants.empty(); ++i) {
    const int from = any_of(layout->places()[static_cast<std::size_t>(any_of(tenants))].cpus);
    if (!exchanges.bring(from, any_of(available), draws.number(0, 20), pairs)) continue;
    ++made;
    const double before = layout->total();
    const auto gains = layout->most_gains();
    const optimal::Places places = layout->places();
    layout->exchange(pairs);
    RC_ASSERT(near(layout->total(), exact()));
    double most = 0;
    for (const int tenant : tenants) {
      const auto at = static_cast<std::size_t>(tenant);
      if (layout->places()[at].cpus != places[at].cpus) most += gains[at];
      for (const int cpu : layout->places()[at].cpus) {
        RC_ASSERT(problem.ground->may_have(tenant, cpu));
        RC_ASSERT(problem.node.holds(layout->places()[at].region, cpu));
      }
    }
    RC_ASSERT(before - layout->total() <= most + kTolerance);
    if (draws.chance(0.5)) continue;
    layout->exchange(pairs);
    RC_ASSERT(near(layout->total(), before));
  }
  RC_CLASSIFY(made > 10, "more than ten exchanges");
}

}  // namespace berth::policies
