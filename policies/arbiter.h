// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"

#include <set>
#include <string>
#include <vector>

namespace berth::policies {

// Merges the proposals of all policies into the actions of this tick (docs/decisions/arbiter.md). Each
// attribute of a workload gets one value: the stronger policy wins.
//
// It drops proposals for workloads that the snapshot does not hold, values that already hold, and changes
// below min_change. No best-effort quota rises faster than be_quota_rise. No pin that stands moves again
// within the cool-down.
//
// With `memory_follows`, the memory of pinned instances follows their pins as [placement] says
// (policies/memory_nodes.h).
//
// `sharing`: services without vCPUs of their own. A pin makes them share those that none owns, so the
// cool-down does not hold it.
//
// The actions are ordered so that vCPUs are freed before they are handed out, then by workload; evictions
// stand in the order in which their policy proposed them. They have decision ids. Pure; any other order in
// `proposals` does not matter.
std::vector<model::Action> arbitrate(const model::Snapshot& snapshot, std::vector<model::Action> proposals,
                                     const PolicySettings& settings, bool memory_follows = true,
                                     const std::set<std::string>& sharing = {});

}  // namespace berth::policies
