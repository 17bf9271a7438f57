// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/oversell.h"
#include "model/snapshot.h"
#include "policies/oversell/settings.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace berth::policies {

// The work that evicting a best-effort workload throws away, in CPU seconds.
using EvictionCost = std::function<double(const model::Workload&)>;

struct EvictionOrder {
  std::vector<std::string> order;                              // first victim first
  std::map<std::string, model::OversellCandidate> candidates;  // those of `order`, by id
};

// Best-effort workloads in the order of eviction, never latency-sensitive ones
// (docs/decisions/eviction-order.md, for overselling). First come those marked evictable, then those of a
// priority below `top_priority`. Then, if `evict_highest` is set, the others. Within each of these, workloads
// of unknown memory come last.
EvictionOrder eviction_order(const model::Snapshot& snapshot, const OversellSettings& settings,
                             const EvictionCost& cost);

// The number of workloads to evict for `excess_bytes` of memory. It assumes the mean use of the best-effort
// workloads that are not being evicted. 1 at least, `candidates` at most.
int eviction_count(const model::Snapshot& snapshot, double excess_bytes, int candidates);

}  // namespace berth::policies
