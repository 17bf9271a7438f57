// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/spark/settings.h"

#include <vector>

namespace berth::policies {

struct SparkProposal {
  model::SparkFindings findings;
  std::vector<model::Action>
      actions;  // without decision ids; at most one per workload and limit, one eviction in all
};

// What each best-effort workload, Spark executors and drivers above all, would cost to evict, whether memory
// must be freed for latency-sensitive ones, and who would go for it (docs/algorithms.md, Spark [USTC]). The
// actions are memory limits that squeeze caches, CPU quotas of executors that came in place of evicted ones
// and, where `evict` is set, the eviction of the first victim: the next is chosen when that shows, or at the
// next tick. Pure.
SparkProposal propose_evictions(const model::Snapshot& snapshot, const SparkSettings& settings);

}  // namespace berth::policies
