// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/optimal/ground.h"
#include "policies/vcpus/optimal/work.h"

#include <vector>

namespace berth::policies::optimal {

// Finds places for the newcomers, by the order given, beside the tenants that `places` has. A newcomer goes
// without only if no arrangement of the newcomers has room for it and for all earlier ones that are served,
// or if no work is left. Scores do not count here.
Places pack(const Ground& ground, const Places& places, const std::vector<int>& newcomers, Work& work);

}  // namespace berth::policies::optimal
