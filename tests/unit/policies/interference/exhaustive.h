// SPDX-License-Identifier: Apache-2.0
// The optimal search, written again after docs/decisions/pinning.md: it looks at every placement. It shares
// nothing with policies/ but the settings. It takes the pins that stand from naive.h, and is for at most 16
// vCPUs.
#pragma once

#include "tests/unit/policies/interference/naive.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace berth::policies::naive {

// The outcome of a round for the running instances.
struct Exhausted {
  std::map<std::string, Cpus> placed;  // one of the best placements, by id
  std::vector<double> least;           // the least score_node with at most as many moves as the index says
  std::size_t moves = 0;               // the number chosen
  bool close = false;                  // the choice hangs on less than 1e-7
};
Exhausted play_round(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                     double repin_cooldown_s);

// The least score_node of all placements of these instances, wherever they stand now.
double least_score(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                   const std::set<std::string>& ids);

}  // namespace berth::policies::naive
