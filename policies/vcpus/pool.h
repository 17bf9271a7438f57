// SPDX-License-Identifier: Apache-2.0
// The vCPUs that best-effort work may use, and those that it may not.
#pragma once

#include "model/cpu_set.h"
#include "model/snapshot.h"
#include "policies/vcpus/occupancy.h"

#include <vector>

namespace berth::policies {

// The vCPUs that latency-sensitive instances leave to best-effort work.
model::CpuSet best_effort_pool(const Occupancy& occupancy, const BestEffortDemand& demand);

// The vCPUs of all placed instances.
model::CpuSet owned_by_instances(const Occupancy& occupancy);

// Of the vCPUs of other programs, those that any work may run on: the kernel keeps work off partitions and
// isolated vCPUs, but not off those of a container that was pinned.
model::CpuSet open_to_all(const std::vector<model::OwnedCpus>& owned_cpus);

// The vCPUs of other programs, of whatever kind.
model::CpuSet of_any_owner(const std::vector<model::OwnedCpus>& owned_cpus);

}  // namespace berth::policies
