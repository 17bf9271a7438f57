// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "policies/interference/policy.h"
#include "policies/vcpus/pool.h"

#include <optional>
#include <vector>

namespace berth::policies {

// Values that berth set lately stay. So a service that crashes and starts again and again does not have every
// best-effort cgroup written each time.
struct Hold {
  double now = 0;         // epoch seconds
  double cooldown_s = 0;  // safety.repin_cooldown

  bool holds(std::optional<double> changed_at) const;
};

// Adds to `proposal` the pool that latency-sensitive instances leave, and the pins that confine best-effort
// workloads to it. Also adds the workloads that cannot be confined. Where no vCPU is owned, pins are lifted
// instead (docs/decisions/pinning.md, best-effort pool). `workloads` ascending by id.
// `of_others`: open_to_all(). `beside_shared`: of best_effort_cores(), which replace the pool in their
// domains. Reserved vCPUs of the node count as owned. A workload is left as it is if its owner keeps it off
// all owned vCPUs already, and if berth leaves it alone. A pin that `hold` holds gets no more vCPUs, except
// those of `beside_shared`, which are damped by their own rule.
void confine_best_effort(const Occupancy& occupancy, const BestEffortDemand& demand,
                         const std::vector<const model::Workload*>& workloads, const model::CpuSet& of_others,
                         const std::map<int, model::BestEffortCores>& beside_shared, const Hold& hold,
                         InterferenceProposal& proposal);

}  // namespace berth::policies
