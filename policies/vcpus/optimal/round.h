// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/optimal/exact.h"

#include <vector>

namespace berth::policies::optimal {

// A round: the new tenants are placed, and a few of those that stand move.
struct Round {
  Placed result;
  std::vector<int> moved;  // ascending
  double unmoved = 0;      // the least total found with no standing tenant moved
  bool searched = false;   // whether moves were tried; else no move could gain enough
  bool proven = false;     // no better result keeps to the rules of a round
};

// `start` has a place for every newcomer. `movable`: standing tenants that may move, ascending. `bound`: a
// lower bound of the total of all placements of these tenants.
Round play_round(const Ground& ground, const Places& start, const std::vector<int>& newcomers,
                 const std::vector<int>& movable, double bound, Work& work);

}  // namespace berth::policies::optimal
