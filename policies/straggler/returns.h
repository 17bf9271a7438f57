// SPDX-License-Identifier: Apache-2.0
// Everything that puts a limit back to its original (docs/decisions/lending.md, giving back).
#pragma once

#include "policies/straggler/round.h"

#include <string>

namespace berth::policies {

// Gives back at once: limits whose reason the workload's class rules out since it changed, and shares that
// their best-effort lenders want now.
void return_at_once(Round& round);

// Ends the growth of tasks that need it no longer, in one step.
void end_growth(Round& round);

// Gives back to best-effort tasks their taken shares, `most` in all. `why` begins the reasons.
void restore(Round& round, double most, const std::string& why);

}  // namespace berth::policies
