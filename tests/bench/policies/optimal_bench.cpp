// SPDX-License-Identifier: Apache-2.0
// Measures the search "optimal" on a host of 2 sockets x 64 cores x 2 threads with 200 instances: its time,
// how far its score is above its bound, and how far below that of the search "window".
#include "policies/decide.h"
#include "policies/interference/policy.h"
#include "policies/vcpus/optimal/exchanges.h"
#include "policies/vcpus/optimal/work.h"
#include "tests/bench/policies/crowded_host.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/interference/problems.h"

#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using namespace berth::policies;  // NOLINT(google-build-using-namespace)
namespace model = berth::model;

bench::Crowd crowd_of(const benchmark::State& state) {
  return {.llcs_per_socket = static_cast<int>(state.range(1)),
          .services = static_cast<int>(state.range(2)),
          .models = static_cast<bench::Models>(state.range(3))};
}

InterferenceSettings settings_of(const benchmark::State& state, Search search) {
  return {.weighting = state.range(0) == 0 ? Weighting::request : Weighting::overlap,
          .search = search,
          .isolation = model::Isolation::vcpus};
}

void apply(const InterferenceProposal& proposal, model::Snapshot& snapshot) {
  model::Plan plan;
  plan.actions = proposal.actions;
  testing::apply(plan, snapshot);
}

void count(const model::InterferenceFindings& findings, benchmark::State& state) {
  state.counters["gap"] = findings.gap.value_or(0);
  state.counters["placed"] = static_cast<double>(findings.instances.size());
}

// All instances are new.
void BM_SolveFull(benchmark::State& state) {
  const model::Snapshot snapshot = bench::crowded_host(crowd_of(state));
  const InterferenceSettings settings = settings_of(state, Search::optimal);
  for (auto _ : state) benchmark::DoNotOptimize(propose_pins(snapshot, settings));
  const auto findings = propose_pins(snapshot, settings).findings;
  count(findings, state);
  const auto by_window = propose_pins(snapshot, settings_of(state, Search::window)).findings;
  state.counters["of_window"] = findings.score_node / by_window.score_node;
}

// The same by window, for comparison.
void BM_WindowFull(benchmark::State& state) {
  const model::Snapshot snapshot = bench::crowded_host(crowd_of(state));
  const InterferenceSettings settings = settings_of(state, Search::window);
  for (auto _ : state) benchmark::DoNotOptimize(propose_pins(snapshot, settings));
}

// One instance is new, and 199 stand where the search put them.
void BM_OneArrival(benchmark::State& state) {
  model::Snapshot snapshot = bench::crowded_host(crowd_of(state));
  const InterferenceSettings settings = settings_of(state, Search::optimal);
  apply(propose_pins(snapshot, settings), snapshot);
  snapshot.workloads.back().cpus = {};
  for (auto _ : state) benchmark::DoNotOptimize(propose_pins(snapshot, settings));
  count(propose_pins(snapshot, settings).findings, state);
}

// Everything stands. The whole policy, with its pressures, findings and texts.
void BM_Unchanged(benchmark::State& state) {
  model::Snapshot snapshot = bench::crowded_host(crowd_of(state));
  const InterferenceSettings settings = settings_of(state, Search::optimal);
  apply(propose_pins(snapshot, settings), snapshot);
  for (auto _ : state) benchmark::DoNotOptimize(propose_pins(snapshot, settings));
  const auto findings = propose_pins(snapshot, settings).findings;
  count(findings, state);
  state.counters["moved"] = static_cast<double>(findings.moved.size());
}

// The same by window: the part that any search costs.
void BM_UnchangedWindow(benchmark::State& state) {
  model::Snapshot snapshot = bench::crowded_host(crowd_of(state));
  const InterferenceSettings settings = settings_of(state, Search::window);
  apply(propose_pins(snapshot, settings), snapshot);
  for (auto _ : state) benchmark::DoNotOptimize(propose_pins(snapshot, settings));
}

// Everything stands. The search alone.
void BM_UnchangedSearch(benchmark::State& state) {
  const model::Snapshot snapshot = bench::crowded_host(crowd_of(state));
  const InterferenceSettings settings = settings_of(state, Search::optimal);
  const testing::Problem problem(snapshot, settings);
  const Placement solved = search_optimal(*problem.problem);
  PlacementProblem standing{.node = problem.node,
                            .settings = problem.settings,
                            .best_effort = problem.problem->best_effort,
                            .requests = problem.problem->requests,
                            .standing = solved.occupancy};
  for (PlacementRequest& request : standing.requests) {
    request.may_move = true;
    request.allowed = {};
  }
  for (auto _ : state) benchmark::DoNotOptimize(search_optimal(standing));
}

// Exchanges that are scored and taken back: kUnitsPerSecond is as many as that in a second.
void BM_Units(benchmark::State& state) {
  const model::Snapshot snapshot = bench::crowded_host(crowd_of(state));
  const testing::Problem problem(snapshot, settings_of(state, Search::optimal));
  const auto layout = optimal::make_layout(*problem.ground);
  layout->set(problem.by_window);
  optimal::Exchanges exchanges(*layout);
  for (int i = 0; i < problem.ground->tenant_count(); ++i) exchanges.open(i);
  testing::Draws draws(1);
  std::vector<optimal::Exchange> pairs;
  double units = 0;
  for (auto _ : state) {
    const int from = draws.number(0, problem.node.size() - 1);
    if (layout->owner(from) < 0) continue;
    if (!exchanges.bring(from, draws.number(0, problem.node.size() - 1), 0, pairs)) continue;
    layout->exchange(pairs);
    benchmark::DoNotOptimize(layout->total());
    layout->exchange(pairs);
    units += static_cast<double>(pairs.size());
  }
  state.counters["units"] = benchmark::Counter(units, benchmark::Counter::kIsRate);
}

void cases(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"overlap", "llcs_per_socket", "services", "models"})
      ->Args({1, 1, 20, 0})
      ->Args({1, 8, 20, 0})
      ->Args({1, 1, 20, 1})
      ->Args({1, 8, 20, 1})
      ->Args({1, 1, 200, 1})
      ->Args({1, 8, 200, 1})
      ->Args({1, 1, 20, 2})
      ->Args({1, 8, 20, 2})
      ->Args({0, 1, 20, 1})
      ->Args({0, 8, 20, 1})
      ->Unit(benchmark::kMillisecond);
}

void two_cases(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"overlap", "llcs_per_socket", "services", "models"})
      ->Args({1, 1, 20, 1})
      ->Args({1, 8, 20, 1})
      ->Args({0, 1, 20, 1})
      ->Args({0, 8, 20, 1});
}

}  // namespace

BENCHMARK(BM_SolveFull)->Apply(cases);
BENCHMARK(BM_WindowFull)->Apply(two_cases)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_OneArrival)->Apply(cases);
BENCHMARK(BM_Unchanged)->Apply(cases);
BENCHMARK(BM_UnchangedWindow)->Apply(two_cases)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_UnchangedSearch)->Apply(cases);
BENCHMARK(BM_Units)->Apply(two_cases);
BENCHMARK_MAIN();
