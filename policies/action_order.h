// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "policies/workload_index.h"

#include <vector>

namespace berth::policies {

// Orders actions so that resources are freed before they are handed out. First come evictions and lowered
// limits. Then latency-sensitive pins, each after those that leave the vCPUs it takes. They do not wait for
// the best-effort pins that leave vCPUs, which come next: there may be thousands of these, and a user can
// make them. Pins of other work follow. Last come best-effort pins that only gain, raised limits, and
// advertisements. Within each group the order is as given.
//
// Where latency-sensitive pins wait for each other in a circle, the first given goes first, and two overlap
// until the circle is through. `actions`: one per attribute, for workloads of the index.
std::vector<model::Action> order_actions(const WorkloadIndex& workloads, std::vector<model::Action> actions);

}  // namespace berth::policies
