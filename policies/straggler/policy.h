// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"
#include "policies/workload_index.h"

#include <map>
#include <string>
#include <vector>

namespace berth::policies {

struct StragglerProposal {
  model::StragglerFindings findings;
  std::vector<model::Action> actions;  // without decision ids; at most one per workload and resource
};

// Finds the latency-sensitive tasks that would miss their deadline, and gives them more. Takes that from
// best-effort ones where nothing is idle, and gives everything back afterwards (docs/decisions/stragglers.md
// and lending.md [HUST]). Of `settings`, [straggler] and the domains of [interference] matter. Pure.
StragglerProposal propose_help(const OrderedSnapshot& ordered, const PolicySettings& settings);

// The number of vCPUs that each grown task is to own, for propose_pins.
std::map<std::string, int> grown_requests(const model::StragglerFindings& findings);

}  // namespace berth::policies
