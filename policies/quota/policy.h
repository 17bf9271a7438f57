// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "policies/quota/settings.h"
#include "policies/workload_index.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace berth::policies {

struct QuotaProposal {
  model::QuotaFindings findings;
  std::vector<model::Action> actions;  // without decision ids; at most one per workload and attribute
};

// Changes of other policies in the same plan, by workload id.
struct OtherChanges {
  std::map<std::string, model::CpuSet> pins;  // the vCPUs of its own after it; empty: none
  std::set<std::string> quotas;               // whose CPU quota it sets
};

// Lifts CPU quotas that can only throttle bursts of instances on vCPUs of their own, sets the burst
// of other services, and gives both back (policies/quota/README.md). Pure.
QuotaProposal propose_quotas(const OrderedSnapshot& ordered, const QuotaSettings& settings,
                             const OtherChanges& others);

}  // namespace berth::policies
