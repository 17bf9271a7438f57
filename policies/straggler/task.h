// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"
#include "policies/straggler/share.h"

#include <optional>
#include <string>

namespace berth::policies {

// Cores as whole vCPUs, rounded up.
int vcpus_for(double cores);

// Whether a straggler's four reports tell what it does with what it has: the last two were made since berth
// last gave it more or moved it. Without that the same slow stretch would be answered again at every tick.
bool has_evidence(const model::Workload& workload, const model::StragglerTask& task, double now);

struct Extension {
  double wish = 0;    // allocation * (rho - 1), in whole vCPUs where these are its allocation
  double amount = 0;  // of that, what its domain or the node's memory permits
  double least = 0;   // what is less than this is not worth a change
  std::string note;   // why it is no more; empty where nothing is to be said
};
// What a straggler lacks of a resource; cores, or whole bytes. `most`: the allocation that its domain, or the
// node's memory, permits. `min_change`: the share of a limit that a change comes to at least, or it is none.
Extension extension_of(const Share& share, model::Resource resource, double growth, double most,
                       double min_change);

// Whether a task's growth is to end: it finished, is no task any more, or has not straggled for `hold_s`.
bool growth_ends(const model::Workload& workload, const std::optional<model::StragglerTask>& task, double now,
                 double hold_s);

// Whether `since` is `hold_s` ago, or unknown. A clock that went backwards holds nothing.
bool is_over(const std::optional<double>& since, double now, double hold_s);

// vCPUs that a pinned task is to own while it is grown; nullopt: those it declares. `granted`: cores it is
// given this tick.
std::optional<int> vcpus_while_grown(const model::Workload& workload, const Share& cpu, double granted,
                                     bool ends);

}  // namespace berth::policies
