// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/interference/settings.h"
#include "policies/workload_index.h"

#include <map>
#include <string>
#include <vector>

namespace berth::policies {

struct InterferenceProposal {
  model::InterferenceFindings findings;
  std::vector<model::Action> actions;  // without decision ids; the arbiter gives them
};

// By workload id: the number of vCPUs that a pinned workload is to own instead of the number it declares. It
// is larger, and holds only while the workload is a straggler, or waits for vCPUs.
using GrownRequests = std::map<std::string, int>;

// The place of a pending workload, found by placement: its vCPUs; or none, and why.
struct PendingBin {
  model::CpuSet cpus;
  std::string rejection;  // in words; empty where there is a place
};
// By id. A workload that is not in it may be placed anywhere.
using PendingBins = std::map<std::string, PendingBin>;

// Places every latency-sensitive workload where the interference score is least. Keeps pins that stand, apart
// from moves of the search "optimal"; no pin moves within `repin_cooldown_s` of its last change. Confines
// best-effort workloads to the rest (docs/decisions/pinning.md). Pure.
InterferenceProposal propose_pins(const OrderedSnapshot& ordered, const InterferenceSettings& settings,
                                  const GrownRequests& grown = {}, const PendingBins& bins = {},
                                  double repin_cooldown_s = 0);

}  // namespace berth::policies
