// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "policies/interference/occupancy.h"
#include "policies/interference/policy.h"

#include <vector>

namespace berth::policies {

// Adds to `proposal` the pool that latency-sensitive instances leave, and the pins that confine best-effort
// workloads to it. Also adds the workloads that cannot be confined. Where no vCPU is owned, pins are lifted
// instead (docs/decisions/pinning.md, best-effort pool). `workloads` ascending by id.
void confine_best_effort(const Occupancy& occupancy, const BestEffortDemand& demand,
                         const std::vector<const model::Workload*>& workloads,
                         InterferenceProposal& proposal);

}  // namespace berth::policies
