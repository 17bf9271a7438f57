// SPDX-License-Identifier: Apache-2.0
// The vCPUs that best-effort work may use, and those that it may not.
#pragma once

#include "model/cpu_set.h"
#include "model/snapshot.h"
#include "policies/settings.h"
#include "policies/vcpus/occupancy.h"

#include <string>
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

// Of `reserved_cpus`, those that berth could use otherwise and best-effort work is to be kept off. None with
// Reserved::shared. Pure.
model::CpuSet strictly_reserved(const model::Snapshot& snapshot, const InterferenceSettings& settings);

// The vCPUs that work may run on: the usable ones without the strictly reserved, or all if there are no
// others, as best-effort work has to run somewhere. Pure.
model::CpuSet vcpus_for_work(const model::Snapshot& snapshot, const InterferenceSettings& settings);

// "; vCPUs 0-1 are reserved", for the reason why work finds too few; empty if the node has none.
std::string reserved_text(const Node& node);

// The vCPUs as all policies plan with them, so that an admission counts none that the plan would not give:
// those of vcpus_for_work().
Node node_to_plan(const model::Snapshot& snapshot, const InterferenceSettings& settings);

}  // namespace berth::policies
