// SPDX-License-Identifier: Apache-2.0
#include "policies/straggler/restore.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace berth::policies {

std::vector<GivenBack> give_back(const std::vector<Lowered>& lowered, double step, double capacity) {
  std::vector<std::size_t> order(lowered.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) {
    const bool reclaimed = lowered[i].held.cause != model::HeldCause::preempted;
    return std::tuple(reclaimed, lowered[i].held.since, lowered[i].id);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });

  std::vector<GivenBack> given;
  double left = step;
  for (const std::size_t i : order) {
    const Lowered& it = lowered[i];
    // A limit as large as the host limits nothing: up to there the limit rises in steps, beyond that at no
    // cost.
    const double goal = std::min(it.original.value_or(capacity), capacity);
    const double missing = std::max(0.0, goal - it.limit);
    if (missing <= left + kNothing) {
      given.push_back({.index = i, .limit = it.original, .amount = missing});
      left = std::max(0.0, left - missing);
    } else if (left > kNothing) {
      given.push_back({.index = i, .limit = it.limit + left, .amount = left});
      left = 0;
    }
  }
  return given;
}

}  // namespace berth::policies
