// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "model/topology.h"

#include <optional>

namespace berth::policies {

// All online vCPUs, whether berth may give them out or not.
model::CpuSet online_of(const model::Topology& topology);

// The vCPUs that the plan gives to running instances as their own, and those where one is until it has moved.
model::CpuSet owned_by_instances(const model::Plan& plan, const model::Snapshot& snapshot);

// The vCPUs for an interrupt that may now be delivered to `cpus`, without the `owned` ones. If all others are
// offline, it gets the nearest: those of its NUMA nodes, else of its sockets, else of the host; not the ones
// `of_others` (model::OwnedCpus) if there are more. nullopt where it stays as it is: none of its vCPUs is
// owned, or none is left.
std::optional<model::CpuSet> off_owned(const model::CpuSet& cpus, const model::CpuSet& owned,
                                       const model::CpuSet& of_others, const model::Topology& topology);

}  // namespace berth::policies
