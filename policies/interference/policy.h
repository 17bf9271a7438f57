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

// Where a pending workload may go, as placement found: the vCPUs of one NUMA node; or nowhere, and why.
struct PendingBin {
  model::CpuSet cpus;
  std::string rejection;  // in words; empty where there is a place
};
// By id. Whoever is not in it may go anywhere.
using PendingBins = std::map<std::string, PendingBin>;

// Places every latency-sensitive workload where the interference score is least, keeps those that stand well,
// and confines best-effort ones to the rest (docs/algorithms.md, interference). Pure.
InterferenceProposal propose_pins(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                                  const GrownRequests& grown = {}, const PendingBins& bins = {});

}  // namespace berth::policies
