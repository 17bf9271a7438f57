// SPDX-License-Identifier: Apache-2.0
// Everything that puts a limit back to what it was (docs/algorithms.md, giving back).
#pragma once

#include "policies/straggler/round.h"

namespace berth::policies {

// At once: limits held for a reason that the workload's class rules out since it changed, and the share of
// best-effort tasks that lent it and want it now.
void return_at_once(Round& round);

// Ends the growth of tasks that need it no longer, in one step.
void end_growth(Round& round);

// Gives back to best-effort tasks what was taken from them, restore_step of the node in all.
void restore(Round& round);

}  // namespace berth::policies
