// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/placement/settings.h"

#include <vector>

namespace berth::policies {

// Makes memory follow the pins of a plan (docs/decisions/placement.md, memory follows). Adds to `actions`
// those that bind the memory of an instance to the NUMA nodes of its pin, as the pin will be after these
// actions. Takes a bond back where there is no pin, or where the setting is off. Pure.
void follow_pins(const model::Snapshot& snapshot, const PlacementSettings& settings,
                 std::vector<model::Action>& actions);

}  // namespace berth::policies
