// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/oversell/eviction.h"
#include "policies/settings.h"
#include "policies/workload_index.h"

#include <vector>

namespace berth::policies {

struct OversellProposal {
  model::OversellFindings findings;
  std::vector<model::Action> actions;  // without decision ids; the arbiter gives them
};

// Decides the capacity that the host advertises, whether it takes new work, and which workloads would be
// evicted (docs/decisions/overselling.md). `cost` is the work that evicting a workload throws away; by
// default the CPU time that a plain one has used so far. Pure.
OversellProposal propose_advertising(const OrderedSnapshot& ordered, const PolicySettings& settings,
                                     const EvictionCost& cost = {});

}  // namespace berth::policies
