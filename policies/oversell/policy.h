// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/oversell/eviction.h"
#include "policies/settings.h"

#include <vector>

namespace berth::policies {

// How far utilisation has to fall below the stop threshold before work is taken again.
inline constexpr double kStopHysteresis = 0.05;

struct OversellProposal {
  model::OversellFindings findings;
  std::vector<model::Action> actions;  // without decision ids; the arbiter gives them
};

// What the node can be said to hold, whether it takes new work, and who would have to go
// (docs/algorithms.md, overselling). `cost` tells what evicting a workload throws away; by default what a
// plain one has used so far. Pure.
OversellProposal propose_advertising(const model::Snapshot& snapshot, const PolicySettings& settings,
                                     const EvictionCost& cost = {});

}  // namespace berth::policies
