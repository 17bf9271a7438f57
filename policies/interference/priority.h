// SPDX-License-Identifier: Apache-2.0
// The priority of best-effort work (docs/decisions/priority.md).
#pragma once

#include "model/snapshot.h"
#include "policies/interference/best_effort.h"
#include "policies/interference/policy.h"
#include "policies/interference/settings.h"

#include <string_view>

namespace berth::policies {

// Gives the groups of best-effort work the wanted priority while any latency-sensitive workload runs, and
// their owners' priority back else, unless `hold` holds it. A group that its owner made idle keeps that.
// Warns of services beside which best-effort work keeps the usual priority. Pure.
void propose_priorities(const model::Snapshot& snapshot, BestEffortPriority priority, const Hold& hold,
                        InterferenceProposal& proposal);

// Whether the priority of cgroup `group` counts against the tasks of cgroup `other`. The kernel compares two
// tasks by those ancestors of theirs that are siblings (find_matching_se() in kernel/sched/fair.c).
bool yields_to(std::string_view group, std::string_view other);

}  // namespace berth::policies
