// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "model/standing.h"
#include "policies/settings.h"

#include <set>
#include <string>

namespace berth::policies {

// Tells which actions of a plan happened. All others than evictions count as carried out.
struct Outcomes {
  std::set<std::string> evicted;  // ids of the workloads whose eviction began
  // Nothing was written, so the next snapshot of the host shows nothing of the plan. The standing remembers
  // what the plan would hold.
  bool assumed = false;
};

// The outcomes in observe mode and in a replay, where a plan counts as carried out as a whole.
Outcomes assumed(const model::Plan& plan);

// Returns what stands after a plan, for the next tick. `plan` was made of `snapshot` with `standing` put
// on it. The caller may have taken held attributes off the snapshot since. berthd in either mode and the
// replay call this one function. Pure. It forgets runs that the snapshot has no more.
model::Standing after(model::Standing standing, const model::Snapshot& snapshot, const model::Plan& plan,
                      const Outcomes& outcomes, const PolicySettings& settings);

// The same after a plan of decide_places(). All but the pins and the cores of best-effort work stays as it
// is, because the plan was made of figures that a tick has taken in already.
model::Standing after_places(model::Standing standing, const model::Snapshot& snapshot,
                             const model::Plan& plan, const Outcomes& outcomes,
                             const std::set<std::string>& arrived);

}  // namespace berth::policies
