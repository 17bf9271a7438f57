// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"

#include <vector>

namespace berth::policies {

// Merges what the policies propose into what is done this tick: one value per attribute and workload (the
// stronger policy wins), nothing that already holds, no change below min_change, no best-effort quota rising
// faster than be_quota_rise, no second move of a pin that stands within the cool-down; ordered so that vCPUs
// are freed before they are handed out, then by workload; decision ids filled in (docs/algorithms.md, merging
// and damping). Proposals for workloads that the snapshot does not hold are dropped. Pure; the order of
// `proposals` is no matter.
std::vector<model::Action> arbitrate(const model::Snapshot& snapshot, std::vector<model::Action> proposals,
                                     const PolicySettings& settings);

}  // namespace berth::policies
