// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "policies/interference/occupancy.h"
#include "policies/interference/policy.h"

#include <map>
#include <string>
#include <vector>

namespace berth::policies {

// The vCPUs that latency-sensitive instances leave to best-effort work.
model::CpuSet best_effort_pool(const Occupancy& occupancy, const BestEffortDemand& demand);

// Ids of the best-effort workloads that are confined to the pool, ascending. None where no vCPU is owned.
std::vector<std::string> confined_to(const model::CpuSet& pool, const Occupancy& occupancy,
                                     const std::vector<const model::Workload*>& workloads);

// The vCPUs of all placed instances.
model::CpuSet owned_by_instances(const Occupancy& occupancy);

// Of the vCPUs of other programs, those that any work may run on: the kernel keeps work off partitions and
// isolated vCPUs, but not off those of a container that was pinned.
model::CpuSet open_to_all(const std::vector<model::OwnedCpus>& owned_cpus);

// The vCPUs of other programs, of whatever kind.
model::CpuSet of_any_owner(const std::vector<model::OwnedCpus>& owned_cpus);

struct PoolHold {
  double now = 0;  // epoch seconds
  double cooldown_s = 0;
};

// Adds to `proposal` the pool that latency-sensitive instances leave, and the pins that confine best-effort
// workloads to it. Also adds the workloads that cannot be confined. Where no vCPU is owned, pins are lifted
// instead (docs/decisions/pinning.md, best-effort pool). `workloads` ascending by id. `borrowed`:
// by id, vCPUs that a confined workload may use beside the pool. `of_others`: open_to_all(). A workload is
// left as it is if its owner keeps it off all owned vCPUs already, and if berth leaves it alone. A pin that
// changed less than three cool-downs ago gets no more vCPUs, so that a service that crashes and starts again
// and again does not have all of them written each time.
void confine_best_effort(const Occupancy& occupancy, const BestEffortDemand& demand,
                         const std::vector<const model::Workload*>& workloads,
                         const std::map<std::string, model::CpuSet>& borrowed, const model::CpuSet& of_others,
                         const PoolHold& hold, InterferenceProposal& proposal);

}  // namespace berth::policies
