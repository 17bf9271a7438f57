// SPDX-License-Identifier: Apache-2.0
// Placement by learned models against placement by the constants, on the simulated machine.
#pragma once

#include "model/learning.h"
#include "tests/unit/policies/interference/ground_truth/fleet.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace berth::policies::testing {

struct TrialSettings {
  HostShape shape;
  double llc_mib = 16;
  bool alike = false;
  Lesson lesson = {};
  int mixes = 10;  // that are placed and measured; none of them was seen before
  std::uint64_t seed = 1;
};

struct Trial {
  int services = 0;
  int accepted = 0;
  int bounded = 0;  // services whose default the observations refute, although no model is accepted
  int changes = 0;  // times that a service was found changed, although none changes
  // Means over the mixes.
  struct Way {
    Interference constants;
    Interference learned;
  };
  std::array<Way, 2> by_search;  // "window", "optimal"
  Interference random;

  // Extra CPU with learned models, as a share of that with the constants.
  double ratio(Search search) const {
    const Way& way = by_search[search == Search::window ? 0 : 1];
    return way.learned.extra_cores / way.constants.extra_cores;
  }
};
Trial run_trial(const TrialSettings& settings);

}  // namespace berth::policies::testing
