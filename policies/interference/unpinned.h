// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/interference/occupancy.h"
#include "policies/interference/settings.h"

#include <optional>

namespace berth::policies {

// What score_node would be if the placed tenants, and best-effort work beside them, were left to a kernel
// that spreads everything evenly (docs/algorithms.md, left unpinned): the yardstick for a placement. Where
// the tenants of `occupancy` are does not matter, only which of them are placed. nullopt where none is.
std::optional<double> score_unpinned(const Occupancy& occupancy, Weighting weighting,
                                     const BestEffortDemand& demand);

}  // namespace berth::policies
