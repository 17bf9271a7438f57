// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"

namespace berth::policies {

// Merges what the policies propose into what is done this tick: one value per attribute and workload (the
// stronger policy wins), nothing that already holds, no change below min_change, no best-effort quota rising
// faster than be_quota_rise, no second move within the cool-down; ordered by workload within an order that frees vCPUs
// before it hands them out; decision ids filled in (docs/algorithms.md, merging and damping). Pure.
std::vector<model::Action> arbitrate(const model::Snapshot& snapshot, std::vector<model::Action> proposals,
                                     const SafetySettings& settings);

}  // namespace berth::policies
