// SPDX-License-Identifier: Apache-2.0
// Problems of placement for tests of single parts of the optimal search.
#pragma once

#include "model/snapshot.h"
#include "policies/vcpus/optimal/ground.h"
#include "policies/vcpus/search.h"

#include <memory>

namespace berth::policies::testing {

// The problem of a snapshot as if no instance were pinned, and its placement by window.
struct Problem {
  Problem(const model::Snapshot& snapshot, const InterferenceSettings& settings);

  InterferenceSettings settings;
  Node node;
  std::unique_ptr<PlacementProblem> problem;
  std::unique_ptr<optimal::Ground> ground;
  optimal::Places by_window;
  std::vector<std::string> ids;  // by tenant
};

}  // namespace berth::policies::testing
