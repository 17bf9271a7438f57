// SPDX-License-Identifier: Apache-2.0
// Nodes with executors, drivers and services, for the tests of evictions for Spark.
#pragma once

#include "policies/eviction/policy.h"
#include "tests/unit/policies/hosts.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::policies::testing::spark {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

inline model::SparkStage stage(int id, std::vector<int> parents, int partitions, std::uint64_t shuffle,
                               std::vector<model::SparkTask> tasks) {
  return {.id = id,
          .parents = std::move(parents),
          .partitions = partitions,
          .shuffle_write_bytes = shuffle,
          .tasks = std::move(tasks)};
}

// Stage 0 is complete, 36 s; stage 1 reads it and has one task of four.
inline model::SparkApp etl() {
  model::SparkApp app;
  app.id = "app-etl";
  app.calculated_time_s = 60;
  app.stages = {
      stage(0, {}, 4, 1'000'000'000, {{"1", 1000, 10}, {"1", 1000, 12}, {"2", 2000, 8}, {"2", 0, 6}}),
      stage(1, {0}, 4, 0, {{"1", 0, 4}})};
  app.running = {{"1", 3}, {"2", 2}};
  return app;
}

inline model::UsageSample sample(double time, std::uint64_t bytes) {
  model::UsageSample made;
  made.time = time;
  made.cpu_cores = 1;
  made.memory_bytes = bytes;
  return made;
}

inline model::Workload using_memory(model::Workload workload, std::uint64_t bytes) {
  workload.usage = {sample(1000, bytes)};
  return workload;
}

inline model::Workload of_spark(const std::string& id, const std::string& app, const std::string& executor,
                                std::uint64_t bytes = kGiB) {
  model::Workload made = using_memory(best_effort(id), bytes);
  made.spark = model::SparkIdentity{app, model::SparkRole::executor, executor};
  if (executor.empty()) made.spark = model::SparkIdentity{app, model::SparkRole::driver, std::nullopt};
  return made;
}

inline model::Workload other(const std::string& id, double cpu_time_s, std::uint64_t bytes = kGiB) {
  model::Workload made = using_memory(best_effort(id), bytes);
  made.cpu_time_s = cpu_time_s;
  return made;
}

inline model::Workload sensitive(std::initializer_list<std::uint64_t> bytes) {
  model::Workload made = latency_sensitive("web", 1);
  made.usage.clear();
  for (const std::uint64_t each : bytes) {
    const double time = 1000 - static_cast<double>(bytes.size() - 1 - made.usage.size());
    made.usage.push_back(sample(time, each));
  }
  return made;
}

// A node with 16 GiB at time 1000; `available` bytes are not in use.
inline model::Snapshot snapshot(std::uint64_t available, std::vector<model::Workload> workloads,
                                std::vector<model::SparkApp> apps = {}) {
  model::Snapshot made = snapshot_of(host({}));
  made.time = 1000;
  made.memory.total_bytes = 16 * kGiB;
  made.memory.available_bytes = available;
  made.workloads = std::move(workloads);
  made.spark_apps = std::move(apps);
  return made;
}

inline model::EvictionFindings find(const model::Snapshot& snapshot, const EvictionSettings& settings = {}) {
  return propose_evictions(snapshot, settings).findings;
}

inline std::vector<std::string> victims(const model::EvictionFindings& findings) {
  std::vector<std::string> ids;
  for (const model::MemoryTaken& victim : findings.victims) ids.push_back(victim.workload);
  return ids;
}

}  // namespace berth::policies::testing::spark
