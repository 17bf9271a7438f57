// SPDX-License-Identifier: Apache-2.0
// Measures the cost of a decision on a host of 2 sockets x 64 cores x 2 threads.
#include "policies/decide.h"
#include "policies/eviction/cost.h"
#include "policies/interference/policy.h"
#include "policies/straggler/policy.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/interference/naive.h"

#include <cstdint>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>

namespace {

using berth::policies::decide;
using berth::policies::PolicySettings;
using berth::policies::Weighting;
namespace testing = berth::policies::testing;
namespace model = berth::model;

constexpr int kSamples = 60;

std::string numbered(const std::string& name, int number) {
  std::string digits = std::to_string(number);
  return name + std::string(4 - digits.size(), '0') + digits;
}

// As many instances and best-effort workloads as told, each with a minute of samples; nothing is pinned.
model::Snapshot large_host(int llcs_per_socket, int instances, int vcpus, int best_effort) {
  model::Snapshot snapshot = testing::snapshot_of(testing::host(
      {.sockets = 2, .llcs_per_socket = llcs_per_socket, .cores_per_llc = 64 / llcs_per_socket}));
  for (int i = 0; i < best_effort; ++i) {
    snapshot.workloads.push_back(testing::best_effort(numbered("batch-", i), 0.05));
  }
  for (int i = 0; i < instances; ++i) {
    snapshot.workloads.push_back(testing::latency_sensitive(numbered("web-", i), vcpus, i));
    snapshot.workloads.back().service = numbered("service-", i % 10);
  }
  for (model::Workload& workload : snapshot.workloads) {
    for (int i = 0; i < kSamples; ++i) {
      model::UsageSample sample;
      sample.time = snapshot.time - kSamples + i;
      sample.cpu_cores = 0.1 * (1 + i % 7);
      workload.usage.push_back(sample);
    }
  }
  return snapshot;
}

PolicySettings settings_for(const benchmark::State& state) {
  PolicySettings settings;
  settings.interference.weighting = state.range(0) == 0 ? Weighting::request : Weighting::overlap;
  settings.interference.isolation = model::Isolation::vcpus;
  return settings;
}

model::Snapshot settled(model::Snapshot snapshot, const PolicySettings& settings) {
  testing::apply(decide(snapshot, settings), snapshot);
  return snapshot;
}

// One new instance among 100 that stand, and nothing else on the host.
model::Snapshot one_newcomer(const benchmark::State& state) {
  model::Snapshot snapshot =
      settled(large_host(static_cast<int>(state.range(1)), 100, 2, 0), settings_for(state));
  snapshot.workloads.push_back(testing::latency_sensitive("zz-new", 2, 1000));
  return snapshot;
}

void BM_PlaceOneAmong100(benchmark::State& state) {
  const PolicySettings settings = settings_for(state);
  const model::Snapshot snapshot = one_newcomer(state);
  for (auto _ : state) benchmark::DoNotOptimize(propose_pins(snapshot, settings.interference));
}

void BM_PlaceOneAmong100Naively(benchmark::State& state) {
  const PolicySettings settings = settings_for(state);
  const model::Snapshot snapshot = one_newcomer(state);
  for (auto _ : state)
    benchmark::DoNotOptimize(berth::policies::naive::place(snapshot, settings.interference));
}

// 100 instances and 900 best-effort workloads, all where they belong: the usual tick.
void BM_DecideSettled1000(benchmark::State& state) {
  const PolicySettings settings = settings_for(state);
  const model::Snapshot snapshot =
      settled(large_host(static_cast<int>(state.range(1)), 100, 2, 900), settings);
  for (auto _ : state) benchmark::DoNotOptimize(decide(snapshot, settings));
}

// The same, all unpinned: the first tick after a start.
void BM_DecideFirst1000(benchmark::State& state) {
  const PolicySettings settings = settings_for(state);
  const model::Snapshot snapshot = large_host(static_cast<int>(state.range(1)), 100, 2, 900);
  for (auto _ : state) benchmark::DoNotOptimize(decide(snapshot, settings));
}

// The most instances this host can hold, all new.
void BM_DecideFirst1000Full(benchmark::State& state) {
  const PolicySettings settings = settings_for(state);
  const model::Snapshot snapshot = large_host(static_cast<int>(state.range(1)), 255, 1, 745);
  for (auto _ : state) benchmark::DoNotOptimize(decide(snapshot, settings));
}

// 100 tasks that are all late, and 900 best-effort workloads that hold more than they use: the most that the
// straggler policy can have to do.
model::Snapshot late_host() {
  model::Snapshot snapshot = large_host(8, 100, 2, 900);
  snapshot.memory.total_bytes = std::uint64_t{1} << 40;
  for (model::Workload& workload : snapshot.workloads) {
    const bool best_effort = workload.workload_class == model::WorkloadClass::best_effort;
    workload.cpu_quota_cores = best_effort ? 1.5 : 2.0;
    workload.memory_high_bytes = std::uint64_t{1} << 30;
    if (best_effort) continue;
    workload.deadline = snapshot.time + 10;
    for (int i = 0; i < 4; ++i) workload.progress.push_back({snapshot.time - 40 + 10 * i, 0.1 + 0.1 * i});
  }
  return snapshot;
}

void BM_HelpStragglers1000(benchmark::State& state) {
  const model::Snapshot snapshot = late_host();
  for (auto _ : state) benchmark::DoNotOptimize(propose_help(snapshot, PolicySettings()));
}

// The whole tick, pins included, which grow for the 100.
void BM_DecideStragglers1000(benchmark::State& state) {
  PolicySettings settings;
  settings.interference.isolation = model::Isolation::vcpus;
  const model::Snapshot snapshot = settled(late_host(), settings);
  for (auto _ : state) benchmark::DoNotOptimize(decide(snapshot, settings));
}

// One application: 60,000 executors with a task each in one stage, and stages that have all read it. The most
// that a driver may tell of is 100,000 tasks and 20,000 stages.
void BM_ExecutorLosses60000(benchmark::State& state) {
  model::SparkApp app;
  app.stages.resize(1 + static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < app.stages.size(); ++i) {
    model::SparkStage& stage = app.stages[i];
    stage.id = static_cast<int>(i);
    stage.job = 0;
    stage.partitions = i == 0 ? 60'000 : 1;
    stage.shuffle_write_bytes = i == 0 ? 1 : 0;
    if (i > 0) stage.parents = {0};
    for (int task = 0; task < stage.partitions; ++task) {
      stage.tasks.emplace_back().executor = std::to_string(task);
      stage.tasks.back().duration_s = 1;
    }
  }
  for (auto _ : state) benchmark::DoNotOptimize(berth::policies::executor_losses(app, {}));
}

void cases(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"overlap", "llcs_per_socket"})
      ->ArgsProduct({{0, 1}, {1, 8}})
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

BENCHMARK(BM_PlaceOneAmong100)->Apply(cases);
BENCHMARK(BM_PlaceOneAmong100Naively)->Apply(cases);
BENCHMARK(BM_DecideSettled1000)->Apply(cases);
BENCHMARK(BM_DecideFirst1000)->Apply(cases);
BENCHMARK(BM_DecideFirst1000Full)->Apply(cases);
BENCHMARK(BM_HelpStragglers1000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_DecideStragglers1000)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ExecutorLosses60000)->Arg(10)->Arg(20'000)->Unit(benchmark::kMillisecond);
BENCHMARK_MAIN();
