// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "policies/interference/occupancy.h"
#include "policies/interference/policy.h"

#include <vector>

namespace berth::policies {

// Adds to `proposal` the pool that latency-sensitive instances leave, the pins that confine best-effort
// workloads to it, and those that cannot be confined. Where nothing is owned there is nothing to keep off:
// pins are lifted (docs/algorithms.md, best-effort pool). `workloads` ascending by id.
void confine_best_effort(const Occupancy& occupancy, const BestEffortDemand& demand,
                         const std::vector<const model::Workload*>& workloads,
                         InterferenceProposal& proposal);

}  // namespace berth::policies
