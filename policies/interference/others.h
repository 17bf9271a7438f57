// SPDX-License-Identifier: Apache-2.0
// Work beside all workloads (docs/decisions/pinning.md, other work).
#pragma once

#include "model/cpu_set.h"
#include "model/snapshot.h"
#include "policies/interference/best_effort.h"
#include "policies/interference/policy.h"
#include "policies/interference/settings.h"

namespace berth::policies {

// Keeps the groups of other work off `owned`, the vCPUs that running instances own, and gives back what no
// instance needs any more, unless `hold` holds it. Each group keeps at least one vCPU. Pure.
void confine_others(const model::Snapshot& snapshot, Others others, const model::CpuSet& owned,
                    const Hold& hold, InterferenceProposal& proposal);

}  // namespace berth::policies
