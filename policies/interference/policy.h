// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/interference/settings.h"

#include <map>
#include <string>
#include <vector>

namespace berth::policies {

struct InterferenceProposal {
  model::InterferenceFindings findings;
  std::vector<model::Action> actions;  // without decision ids; the arbiter gives them
};

// How many vCPUs a pinned instance is to own in place of those it declares, by workload id; more, and only
// for as long as it is a straggler.
using GrownRequests = std::map<std::string, int>;

// vCPUs that pending workloads are limited to, by id: those of the NUMA node that placement gave them.
using PendingBins = std::map<std::string, model::CpuSet>;

// Places every latency-sensitive workload where the interference score is least, keeps those that stand well,
// and confines best-effort ones to the rest (docs/algorithms.md, interference). Pure.
InterferenceProposal propose_pins(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                                  const GrownRequests& grown = {}, const PendingBins& bins = {});

}  // namespace berth::policies
