// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/optimal/ground.h"
#include "policies/vcpus/optimal/work.h"

#include <vector>

namespace berth::policies::optimal {

// A placement and the sum of vcpus * score of it.
struct Placed {
  Places places;
  double total = 0;
};

// Whether branch and bound could come to an end with these tenants open, by a rough count of placements.
bool is_small(const Ground& ground, const Places& places, const std::vector<int>& open);

// Finds the best placement of the open tenants while all others in `best.places` stay. It replaces `best`
// where it finds a lower total. True where it came to an end: then no placement is better by more than
// kTieTotal. `best` holds a place for every open tenant. Its total may also be that of another placement.
bool solve_exactly(const Ground& ground, const std::vector<int>& open, Placed& best, Work& work);

}  // namespace berth::policies::optimal
