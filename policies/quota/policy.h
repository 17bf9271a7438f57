// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "policies/quota/settings.h"
#include "policies/workload_index.h"

#include <set>
#include <string>
#include <vector>

namespace berth::policies {

struct QuotaProposal {
  model::QuotaFindings findings;
  std::vector<model::Action> actions;  // without decision ids; at most one per workload and attribute
};

// Lifts CPU quotas (to the size of the host) that only hinder instances on vCPUs of their own, sets the burst
// of other services, and gives both back (policies/quota/README.md). `losing`: ids of instances that have no
// vCPUs of their own after this plan. Pure.
QuotaProposal propose_quotas(const OrderedSnapshot& ordered, const QuotaSettings& settings,
                             const std::set<std::string>& losing);

}  // namespace berth::policies
