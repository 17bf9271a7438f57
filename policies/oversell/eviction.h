// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/oversell.h"
#include "model/snapshot.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace berth::policies {

// What evicting a best-effort workload throws away, in CPU seconds.
using EvictionCost = std::function<double(const model::Workload&)>;

struct EvictionOrder {
  std::vector<std::string> order;                              // first victim first
  std::map<std::string, model::OversellCandidate> candidates;  // those of `order`, by id
};

// Best-effort workloads in the order in which they would have to go: those marked evictable, then those of
// less than the highest priority among the others, then, where wished, those of the highest; of alike ones
// those last of which no memory is known yet (docs/algorithms.md, overselling). Latency-sensitive ones are
// never among them.
EvictionOrder eviction_order(const model::Snapshot& snapshot, bool evict_highest, const EvictionCost& cost);

// How many have to go for `excess_bytes` of memory to come back, by what the best-effort workloads use on
// average that are not going already: 1 at least, `candidates` at most.
int eviction_count(const model::Snapshot& snapshot, double excess_bytes, int candidates);

}  // namespace berth::policies
