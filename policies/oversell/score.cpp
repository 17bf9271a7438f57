// SPDX-License-Identifier: Apache-2.0
#include "policies/oversell/score.h"

#include <algorithm>

namespace berth::policies {

namespace {

// The part of the resource that its work needs at its peak, or uses now. An unknown capacity has no part.
double share_of(const model::OversoldResource& found) {
  const double peak = found.capacity > 0 ? found.peak / found.capacity : 0;
  return std::max({peak, found.utilisation, 0.0});
}

}  // namespace

double host_score(const model::OversellFindings& oversell,
                  const std::optional<model::InterferenceFindings>& interference) {
  const double crowded = std::max(share_of(oversell.cpu), share_of(oversell.memory));
  const double disturbed = interference ? std::max(interference->score_node, 0.0) : 0;
  return std::min(1.0, crowded + disturbed);
}

}  // namespace berth::policies
