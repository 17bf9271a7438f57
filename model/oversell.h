// SPDX-License-Identifier: Apache-2.0
// How much work a host can take beyond its size, and the figures behind it (docs/decisions/overselling.md).
#pragma once

#include "model/named_amounts.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::model {

// Whether a host takes new work. schedule: yes. no_schedule: no. evict: no, and some of its work has to end.
enum class SchedulingState { schedule, no_schedule, evict };

struct AdvertisedResource {
  double factor = 1;  // what is advertised is this times the capacity
  SchedulingState state = SchedulingState::schedule;
  friend bool operator==(const AdvertisedResource&, const AdvertisedResource&) = default;
};

// nullopt: nothing yet.
struct Advertised {
  std::optional<AdvertisedResource> cpu = std::nullopt;
  std::optional<AdvertisedResource> memory = std::nullopt;
  friend bool operator==(const Advertised&, const Advertised&) = default;
};

// Amounts are cores, or bytes.
struct OversoldResource {
  double capacity = 0;
  double request = 0;                    // sum of what the workloads asked for
  double latency_sensitive_request = 0;  // the part of it that is not of best-effort work
  // The part of the capacity that best-effort work can use: the vCPUs that no latency-sensitive instance
  // owns. nullopt: all of it.
  std::optional<double> best_effort_capacity = std::nullopt;
  int samples = 0;  // sample times that are common to those whose use counts
  // The peak by each method, without `warming`; the first two nullopt without a common sample.
  std::optional<double> percentile = std::nullopt;
  std::optional<double> normal = std::nullopt;
  std::optional<double> weighted = std::nullopt;
  // The peak by the last day's used shares, applied to the present request; nullopt without enough of them.
  std::optional<double> remembered = std::nullopt;
  double warming = 0;  // of the peak: requests of work whose use is not known yet
  // Use divided by request, of the workloads whose use is known; nullopt where their request is 0.
  std::optional<double> used_share = std::nullopt;
  double peak = 0;         // by the method that is set; the request where nothing is known
  double wanted = 1;       // request / peak, within 1 and the largest factor
  double factor = 1;       // the factor that is advertised now
  double utilisation = 0;  // 0..1; more where memory is overcommitted
  SchedulingState state = SchedulingState::schedule;
  std::string reason;  // in words
  friend bool operator==(const OversoldResource&, const OversoldResource&) = default;
};

// A best-effort workload that may be evicted.
struct OversellCandidate {
  int stage = 1;  // 1: marked evictable, 2: of a priority below oversell.top_priority, 3: of another
  int priority = 0;
  double cost = 0;  // the work that eviction throws away, in CPU seconds
  std::uint64_t memory_bytes = 0;
  std::optional<double> running_priority = std::nullopt;  // age / (reserved / used), of stage 3
  friend bool operator==(const OversellCandidate&, const OversellCandidate&) = default;
};

struct OversellFindings {
  std::string method;  // "weighted", "percentile", "normal", "max"
  // By id: workloads whose request stands for their use of either resource, with their age in seconds.
  NamedAmounts warming;
  OversoldResource cpu;
  OversoldResource memory;
  double score = 0;  // 0..1: how crowded and disturbed new work would be here
  double stop_threshold = 0;
  double evict_threshold = 0;            // of memory
  std::uint64_t freeing_bytes = 0;       // memory of workloads that are being evicted
  int evict_count = 0;                   // how many more of `order` have to be evicted
  std::vector<std::string> order;        // ids, first victim first
  std::vector<std::string> chosen = {};  // those of `order` that end next, or would with oversell.evict
  std::map<std::string, OversellCandidate> candidates;  // by id, those of `order`
  // In words: an operator should know that memory runs out and no workload can be evicted. nullopt: nothing.
  std::optional<std::string> warning = std::nullopt;
  friend bool operator==(const OversellFindings&, const OversellFindings&) = default;
};

}  // namespace berth::model
