// SPDX-License-Identifier: Apache-2.0
// The Spark policy against its plain restatement, and what holds of it whatever the node.
#include "model/json.h"
#include "policies/decide.h"
#include "policies/eviction/policy.h"
#include "tests/unit/policies/eviction/naive_eviction.h"
#include "tests/unit/policies/eviction/random_eviction.h"
#include "tests/unit/policies/seeds.h"
#include "tests/unit/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <variant>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

testing::RandomCase any_case() { return testing::random_spark_case(*testing::any_seed()); }

using berth::testing::rounding;

// An application has 6 stages of 8 tasks at most, and a figure of it a few operations for each. A workload
// has 10 samples.
constexpr double kOperations = 400;

// Sums of run times and bytes, where nothing is subtracted.
bool same_sum(double a, double b) { return berth::testing::same_sum(a, b, kOperations); }

// Deviation over mean: a deviation of n figures is at most sqrt(n) times their mean, and n is below 25.
double bound_of_delta(const EvictionSettings& settings) {
  return rounding(kOperations, 5 * settings.delta_weight);
}

// Mean and z deviations less the last sum; then it is made whole.
double bound_of_growth(const testing::RandomCase& node) {
  double most = 0;
  for (const model::Workload& it : node.snapshot.workloads) {
    double bytes = 0;
    for (const auto& sample : it.usage)
      bytes = std::max(bytes, static_cast<double>(sample.memory_bytes.value_or(0)));
    most += bytes;
  }
  return 1 + rounding(kOperations, most * (2 + 5 * node.settings.eviction.z));
}

// The stages that are expected less those that are done, in units of these; both are at most twice the
// stages.
double bound_of_remaining(const model::SparkApp& app, double done, const EvictionSettings& settings) {
  const double stages = 4 * static_cast<double>(app.stages.size());
  return rounding(kOperations, settings.gamma * app.calculated_time_s * stages / std::max(done, 0.01));
}

// The work that is done less delta times what remains.
double bound_of_cost(const model::SparkApp& app, const model::SparkAppFigures& figures,
                     const EvictionSettings& settings, double delta) {
  const double remaining = figures.remaining_s.value_or(0);
  return rounding(kOperations, figures.recalculation_s + delta * std::abs(remaining)) +
         delta * bound_of_remaining(app, figures.stages_done, settings) +
         bound_of_delta(settings) * std::abs(remaining);
}

const model::SparkApp& app_named(const model::Snapshot& snapshot, const std::string& id) {
  return *std::find_if(snapshot.spark_apps.begin(), snapshot.spark_apps.end(),
                       [&](const auto& app) { return app.id == id; });
}

// A driver costs what its application does; all others cost sums of what they computed.
double bound_of_cost(const testing::RandomCase& node, const model::EvictionFindings& findings,
                     const std::string& id) {
  double bound = rounding(kOperations, std::abs(findings.candidates.at(id).cost_s));
  for (const model::Workload& it : node.snapshot.workloads) {
    if (it.id != id || !it.spark || !findings.apps.contains(it.spark->app)) continue;
    if (it.spark->role == model::SparkRole::driver)
      bound += bound_of_cost(app_named(node.snapshot, it.spark->app), findings.apps.at(it.spark->app),
                             node.settings.eviction, findings.delta);
  }
  return bound;
}

const model::Workload& find(const model::Snapshot& snapshot, const std::string& id) {
  return *std::find_if(snapshot.workloads.begin(), snapshot.workloads.end(),
                       [&](const auto& workload) { return workload.id == id; });
}

double limit_of(const model::Action& action) {
  const auto* high = action.sets<model::MemoryHigh>();
  RC_ASSERT(high != nullptr);
  RC_ASSERT(high->bytes.has_value());
  return static_cast<double>(*high->bytes);
}

}  // namespace

RC_GTEST_PROP(EvictionProperty, IsWhatItsRestatementSays, ()) {
  testing::RandomCase node = any_case();
  node.settings.eviction.forecast = ForecastRule::published;  // forecast_property_test.cpp has the other one
  const EvictionProposal real = propose_evictions(node.snapshot, node.settings.eviction);
  const model::EvictionFindings& findings = real.findings;
  const naive::Eviction expected = naive::evict(node.snapshot, node.settings.eviction);
  RC_CLASSIFY(findings.trigger == model::EvictionTrigger::need, "a need");
  RC_CLASSIFY(findings.trigger == model::EvictionTrigger::pressure, "a pressure");
  RC_CLASSIFY(!findings.reclaim.empty(), "caches squeezed");
  RC_CLASSIFY(findings.delta > 0, "demand climbs");
  RC_CLASSIFY(findings.victims.size() > 1, "several victims");
  const EvictionSettings& settings = node.settings.eviction;
  const double of_growth = bound_of_growth(node);
  RC_ASSERT(std::abs(findings.delta - expected.delta) <= bound_of_delta(settings));
  RC_ASSERT(std::abs(static_cast<double>(findings.growth_bytes) - std::ceil(expected.growth)) <= of_growth);
  RC_ASSERT(std::abs(static_cast<double>(findings.need_bytes) - expected.need) <= of_growth);
  RC_ASSERT(findings.apps.size() == expected.apps.size());
  for (const auto& [id, app] : findings.apps) {
    const naive::AppWorth& same = expected.apps.at(id);
    RC_ASSERT(same_sum(app.computation_s, same.computation));
    RC_ASSERT(same_sum(app.transmission_bytes, same.transmission));
    RC_ASSERT(same_sum(app.recalculation_s, same.recalculation));
    RC_ASSERT(same_sum(app.stages_done, same.done));
    const model::SparkApp& given = app_named(node.snapshot, id);
    RC_ASSERT(std::abs(app.remaining_s.value_or(0) - same.remaining) <=
              bound_of_remaining(given, app.stages_done, settings));
    RC_ASSERT(std::abs(app.cost_s - same.cost) <= bound_of_cost(given, app, settings, findings.delta));
  }
  RC_ASSERT(findings.candidates.size() == expected.costs.size());
  for (const auto& [id, candidate] : findings.candidates)
    RC_ASSERT(std::abs(candidate.cost_s - expected.costs.at(id)) <= bound_of_cost(node, findings, id));
  RC_ASSERT(findings.order == expected.order);
  std::vector<std::string> victims;
  for (const model::MemoryTaken& victim : findings.victims) victims.push_back(victim.workload);
  RC_ASSERT(victims == expected.victims);
  RC_ASSERT(findings.reclaim.size() == expected.limits.size());
  const bool evicts = node.settings.eviction.evict && !expected.victims.empty();
  RC_CLASSIFY(evicts, "an eviction");
  int evictions = 0;
  RC_CLASSIFY(!expected.kept.empty(), "somebody is kept squeezed");
  std::map<std::string, double> limits = expected.limits;
  limits.insert(expected.kept.begin(), expected.kept.end());
  std::map<std::string, double> quotas = expected.held_cores;
  RC_CLASSIFY(!expected.held.empty(), "somebody is held");
  std::set<std::string> held;
  for (const auto& [id, reason] : findings.held) held.insert(id);
  RC_ASSERT(held == expected.held);
  RC_ASSERT(real.actions.size() == limits.size() + quotas.size() + (evicts ? 1 : 0));
  for (const model::Action& action : real.actions) {
    if (const auto* evict = std::get_if<model::Evict>(&action.what)) {
      ++evictions;
      RC_ASSERT(evict->workload == expected.victims.front());
      const auto& victim = find(node.snapshot, evict->workload);
      const bool executor = victim.spark && victim.spark->role == model::SparkRole::executor;
      RC_ASSERT((evict->how == model::EvictionStep::decommission) == executor);
      const bool emergency = node.snapshot.memory.psi_full_avg10 > node.settings.eviction.psi_full;
      RC_ASSERT(evict->grace_s ==
                (emergency ? std::min(1.0, node.settings.eviction.grace_s) : node.settings.eviction.grace_s));
      RC_ASSERT(evict->frees_bytes == findings.victims.front().bytes);
      continue;
    }
    if (const auto* quota = action.sets<model::CpuQuota>()) {
      RC_ASSERT(quotas.contains(*action.workload()));
      RC_ASSERT(quota->cores == quotas.at(*action.workload()));
      quotas.erase(*action.workload());
      continue;
    }
    RC_ASSERT(limits.contains(*action.workload()));
    // Whole bytes on both sides.
    RC_ASSERT(limit_of(action) == limits.at(*action.workload()));
    limits.erase(*action.workload());
  }
  RC_ASSERT(evictions == (evicts ? 1 : 0));
}

RC_GTEST_PROP(EvictionProperty, NobodyLatencySensitiveGoesAndADriverGoesAfterItsExecutors, ()) {
  const testing::RandomCase node = any_case();
  const model::EvictionFindings findings = propose_evictions(node.snapshot, node.settings.eviction).findings;
  std::set<std::string> driven;  // applications whose driver had its turn
  std::set<std::string> seen;
  for (const std::string& id : findings.order) {
    const model::Workload& workload = find(node.snapshot, id);
    RC_ASSERT(workload.workload_class == model::WorkloadClass::best_effort);
    RC_ASSERT(seen.insert(id).second);
    if (!workload.spark) continue;
    if (workload.spark->role == model::SparkRole::driver) {
      driven.insert(workload.spark->app);
    } else {
      RC_ASSERT(!driven.contains(workload.spark->app));
    }
  }
  RC_ASSERT(findings.victims.size() <= findings.order.size());
}

RC_GTEST_PROP(EvictionProperty, TheOrderAscendsByTheFigureThatItShows, ()) {
  const testing::RandomCase node = any_case();
  const model::EvictionFindings findings = propose_evictions(node.snapshot, node.settings.eviction).findings;
  double last = -std::numeric_limits<double>::infinity();
  for (const std::string& id : findings.order) {
    const double key = findings.candidates.at(id).rank_key.value_or(std::numeric_limits<double>::infinity());
    RC_ASSERT(key >= last);
    last = key;
  }
}

RC_GTEST_PROP(EvictionProperty, AllVictimsAreNeeded, ()) {
  const testing::RandomCase node = any_case();
  const model::EvictionFindings findings = propose_evictions(node.snapshot, node.settings.eviction).findings;
  std::uint64_t freed = 0;
  for (std::size_t i = 0; i < findings.victims.size(); ++i) {
    RC_ASSERT(i == 0 || freed < findings.need_bytes);
    freed += findings.victims[i].bytes;
  }
}

// A driver that says the same work in another order of stages is worth the same.
RC_GTEST_PROP(EvictionProperty, TheOrderOfStagesInTheSnapshotDoesNotMatter, ()) {
  testing::RandomCase node = any_case();
  const auto before = propose_evictions(node.snapshot, node.settings.eviction).findings;
  for (model::SparkApp& app : node.snapshot.spark_apps) std::reverse(app.stages.begin(), app.stages.end());
  const auto after = propose_evictions(node.snapshot, node.settings.eviction).findings;
  for (const auto& [id, candidate] : before.candidates)
    RC_ASSERT(std::abs(candidate.cost_s - after.candidates.at(id).cost_s) <= bound_of_cost(node, before, id));
}

// No workload is evicted unless a policy may evict, no spared one ever, and one at a time. A plan can be read
// back.
RC_GTEST_PROP(EvictionProperty, APlanEvictsNoMoreThanItsPoliciesMayAndReadsBack, ()) {
  testing::RandomCase node = any_case();
  node.settings.oversell.evict = *rc::gen::arbitrary<bool>();
  node.settings.oversell.evict_highest = *rc::gen::arbitrary<bool>();
  const model::Plan plan = decide(node.snapshot, node.settings);
  int evictions = 0;
  int for_overselling = 0;
  for (const model::Action& action : plan.actions) {
    if (!std::holds_alternative<model::Evict>(action.what)) continue;
    ++evictions;
    const model::Workload& victim = find(node.snapshot, *action.workload());
    RC_ASSERT(victim.workload_class == model::WorkloadClass::best_effort);
    RC_ASSERT(!victim.evicted_at && !victim.fixed.life);
    const bool oversell = action.policy == "oversell";
    for_overselling += oversell ? 1 : 0;
    RC_ASSERT((oversell ? node.settings.oversell.evict : node.settings.eviction.evict));
  }
  RC_CLASSIFY(evictions == 1, "an eviction");
  // Overselling evicts several where memory fills up faster than one at a time frees it.
  RC_ASSERT(evictions - for_overselling <= 1);
  RC_ASSERT(for_overselling <= plan.findings.oversell->evict_count);
  const auto again = model::parse_plan(model::to_json(plan));
  if (!again) RC_FAIL(again.error().message());
  RC_ASSERT(*again == plan);
}

}  // namespace berth::policies
