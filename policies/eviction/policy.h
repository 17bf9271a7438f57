// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/eviction/settings.h"

#include <vector>

namespace berth::policies {

struct EvictionProposal {
  model::EvictionFindings findings;
  std::vector<model::Action>
      actions;  // without decision ids; at most one per workload and limit, one eviction in all
};

// Prices the eviction of best-effort workloads, Spark executors and drivers above all. Decides whether memory
// must be freed for latency-sensitive ones, and by which victims (docs/decisions/eviction-order.md [USTC]).
//
// The actions are memory limits that squeeze caches, and CPU quotas of executors that replace evicted ones.
// Where `evict` is set, they include the eviction of the first victim. The next victim is chosen once that
// shows, or at the next tick. Pure.
EvictionProposal propose_evictions(const model::Snapshot& snapshot, const EvictionSettings& settings);

}  // namespace berth::policies
