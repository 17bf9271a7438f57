// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/optimal/ground.h"
#include "policies/vcpus/optimal/work.h"

namespace berth::policies::optimal {

// How much a bound may cost. A quick one is mostly less than 1 % below a thorough one.
enum class Effort { quick, thorough };

// At most the sum of vcpus * score of any placement of the tenants that `places` has, all limits aside. At
// least 0. Only the number and kind of these tenants matter, not where they are. bound.cpp says why it holds.
double lower_bound(const Ground& ground, const Places& places, Effort effort, Work& work);

}  // namespace berth::policies::optimal
