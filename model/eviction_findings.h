// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::model {

// The sum of the memory that latency-sensitive workloads use, and its trend. Bytes.
struct MemoryDemand {
  std::size_t samples = 0;  // looked at; without any, nothing below is known and all of it is 0
  double mean_bytes = 0;    // M
  double sd_bytes = 0;      // population standard deviation
  std::uint64_t latest_bytes = 0;
  double slope_bytes_per_s = 0;  // of the least-squares line
  bool rising = false;
  friend bool operator==(const MemoryDemand&, const MemoryDemand&) = default;
};

// The cost of losing a whole application (docs/decisions/eviction-cost.md). Seconds, where nothing else is
// said.
struct SparkAppFigures {
  double computation_s = 0;
  double transmission_bytes = 0;
  double recalculation_s = 0;
  std::size_t stages = 0;          // known ones
  std::size_t stages_to_come = 0;  // of jobs that are expected to follow; X is the sum of both
  double stages_done = 0;          // W
  std::optional<double> remaining_s = std::nullopt;  // nullopt where nothing is done, so nothing is known
  double cost_s = 0;
  std::uint64_t frees_bytes = 0;        // memory in use by its executors and driver on this host
  std::optional<double> cost_per_byte;  // nullopt where they use nothing that is known
  friend bool operator==(const SparkAppFigures&, const SparkAppFigures&) = default;
};

// A best-effort workload that could be evicted.
struct EvictionCandidate {
  enum class Kind { executor, driver, other };
  Kind kind = Kind::other;
  std::optional<std::string> app;  // of a Spark workload
  double lost_s = 0;     // executor: run time of completed tasks whose output goes with it, or its move
  double running_s = 0;  // executor: run time so far of its running tasks
  double cost_s = 0;     // the sum; a driver's: its application's; else CPU seconds used so far
  std::uint64_t frees_bytes = 0;
  // The key of the ascending `order`: seconds for each byte that is freed or, if `rank` says so, seconds. It
  // is the workload's own key where each is ranked by itself, else its application's. nullopt where that
  // frees no known memory; such a candidate comes last.
  std::optional<double> rank_key = {};
  std::string reason;  // the cost in words
  friend bool operator==(const EvictionCandidate&, const EvictionCandidate&) = default;
};

// A workload that is to be evicted or squeezed now, and by how many bytes.
struct MemoryTaken {
  std::string workload;
  std::uint64_t bytes = 0;
  std::string reason;
  friend bool operator==(const MemoryTaken&, const MemoryTaken&) = default;
};

// How much memory latency-sensitive workloads are forecast to use at most, within the horizon.
struct MemoryForecast {
  std::string shape;             // "few", "trend" or "cycle"
  double horizon_s = 0;          // H
  double peak_bytes = 0;         // F
  double margin_bytes = 0;       // E, below 0 where earlier forecasts were too high
  double slope_bytes_per_s = 0;  // of the trend that it extends
  std::size_t readings = 0;
  std::size_t errors = 0;  // of earlier forecasts that the margin is from; 0: it is from the noise
  friend bool operator==(const MemoryForecast&, const MemoryForecast&) = default;
};

enum class EvictionTrigger { none, need, pressure };

struct EvictionFindings {
  std::string complexity;
  std::string rank;
  MemoryDemand demand;
  std::optional<MemoryForecast> forecast;  // nullopt by the published rule, or without readings
  double delta = 0;
  std::uint64_t growth_bytes = 0;
  std::uint64_t available_bytes = 0;
  std::uint64_t reserve_bytes = 0;
  std::uint64_t freeing_bytes = 0;  // memory in use by workloads that are being evicted
  std::uint64_t need_bytes = 0;
  double psi_full_avg10 = 0;  // percent
  EvictionTrigger trigger = EvictionTrigger::none;
  std::string reason;                           // the comparison that decided, in words
  std::map<std::string, SparkAppFigures> apps;  // by application id
  // By workload id: Spark's, and, where there is a trigger, every best-effort workload.
  std::map<std::string, EvictionCandidate> candidates;
  std::vector<std::string> order;             // of every candidate, first victim first
  std::map<std::string, std::string> spared;  // best-effort workloads that are no candidate: id and why
  // Executors that replace evicted ones and are slowed down for a while: id and why.
  std::map<std::string, std::string> held = {};
  std::vector<MemoryTaken> reclaim;  // caches that are squeezed first
  std::vector<MemoryTaken> victims;  // the first of `order`, as many as the need takes
  friend bool operator==(const EvictionFindings&, const EvictionFindings&) = default;
};

}  // namespace berth::model
