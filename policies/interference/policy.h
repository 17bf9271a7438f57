// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/interference/settings.h"
#include "policies/pins.h"
#include "policies/workload_index.h"

#include <vector>

namespace berth::policies {

struct InterferenceProposal {
  model::InterferenceFindings findings;
  std::vector<model::Action> actions;  // without decision ids; the arbiter gives them
};

// Places every latency-sensitive workload where the interference score is least. Keeps pins that stand, apart
// from moves of the search "optimal"; no pin moves within `repin_cooldown_s` of its last change. Confines
// best-effort workloads to the rest (docs/decisions/pinning.md). Pure.
InterferenceProposal propose_pins(const OrderedSnapshot& ordered, const InterferenceSettings& settings,
                                  const GrownRequests& grown = {}, const PendingBins& bins = {},
                                  double repin_cooldown_s = 0);

}  // namespace berth::policies
