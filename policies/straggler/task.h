// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"
#include "policies/share.h"

#include <optional>
#include <string>

namespace berth::policies {

// Cores as whole vCPUs, rounded up.
int vcpus_for(double cores);

// Whether a straggler's four reports show the effect of its present share. For that, the last two must be
// no older than berth's last change of its share or pin. Without that, every tick would answer the same slow
// stretch again.
bool has_evidence(const model::Workload& workload, const model::StragglerTask& task, double now);

struct Extension {
  double wish = 0;    // allocation * (rho - 1), in whole vCPUs where these are its allocation
  double amount = 0;  // the part of that which its domain or the host's memory permits
  double least = 0;   // less than this is not worth a change
  std::string note;   // why it is no more; empty without a reason
};
// The amount of a resource that a straggler lacks; cores, or whole bytes. `most`: the allocation that its
// domain, or the host's memory, permits. `min_change`: a smaller change, as a share of the limit, is not
// made.
Extension extension_of(const Share& share, model::Resource resource, double growth, double most,
                       double min_change);

// Whether a workload's growth ends: it finished, is no task any more (`task` is nullptr), or has not
// straggled for `hold_s`.
bool growth_ends(const model::Workload& workload, const model::StragglerTask* task, double now,
                 double hold_s);

// Whether `since` is `hold_s` ago, or unknown. A clock that went backwards holds nothing.
bool is_over(const std::optional<double>& since, double now, double hold_s);

// Number of vCPUs that a pinned task is to own while it is grown; nullopt: its declared number. `granted`:
// cores that it gets this tick.
std::optional<int> vcpus_while_grown(const model::Workload& workload, const Share& cpu, double granted,
                                     bool ends);

}  // namespace berth::policies
