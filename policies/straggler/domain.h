// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/workload.h"
#include "policies/interference/node.h"
#include "policies/interference/settings.h"

namespace berth::policies {

// The most vCPUs a latency-sensitive task can have without leaving its domain: of the region that its pin
// lies in, or of the largest its request may be placed in, those that it may own; on the whole node for one
// that is never pinned. be_min_cpus vCPUs of the node always stay with others (docs/algorithms.md,
// extension).
int domain_cores(const Node& node, const InterferenceSettings& settings, const model::Workload& workload);

}  // namespace berth::policies
