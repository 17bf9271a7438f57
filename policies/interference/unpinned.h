// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/interference/settings.h"
#include "policies/vcpus/occupancy.h"

#include <optional>

namespace berth::policies {

// The score_node of the placed tenants and best-effort work if a kernel spread all of them evenly
// (docs/decisions/interference.md, left unpinned). It is the yardstick for a placement. It matters which
// tenants of `occupancy` are placed, not where. nullopt where none is.
std::optional<double> score_unpinned(const Occupancy& occupancy, Weighting weighting,
                                     const BestEffortDemand& demand);

}  // namespace berth::policies
