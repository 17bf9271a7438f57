// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/interference/settings.h"
#include "policies/vcpus/occupancy.h"
#include "policies/vcpus/search.h"

#include <string>
#include <vector>

namespace berth::policies {

// A pin that stands except for its size: the instance gets more vCPUs beside those it has, or gives some up.
struct Resize {
  int tenant = 0;         // request i is tenant i
  std::vector<int> held;  // positions that it owns
  int vcpus = 0;          // the number it is to own
  int region = -1;        // the region where it grows; -1 for one that shrinks
};

// Number of vCPUs that all of them together will own once they are placed.
int owned_by(const std::vector<Resize>& resizes);

// Places each of them, those that shrink first, else in the given order. One that shrinks keeps the window of
// its own vCPUs that scores best. One that grows keeps all its vCPUs and gets the best window of free ones of
// its region. It gets fewer where there are no more, or where min_cpus would be touched
// (docs/decisions/pinning.md, growing and shrinking in place). Returns a description for each resize.
std::vector<std::string> resize_pins(const std::vector<Resize>& resizes,
                                     const std::vector<PlacementRequest>& requests,
                                     const InterferenceSettings& settings, const BestEffortDemand& demand,
                                     Occupancy& occupancy);

}  // namespace berth::policies
