// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace berth::trial {

// With fewer blocks no difference can be shown: 2 of the 2^7 ways to exchange sides are 1.6 % of them.
inline constexpr std::size_t kFewestBlocks = 7;
// The most that chance alone may cause a difference in any figure of a trial.
inline constexpr double kLevel = 0.02;

// A figure of the two windows of a block: of side a, and of side b.
using Pair = std::array<double, 2>;
// By block; nullopt where it is not known of both windows.
using Series = std::vector<std::optional<Pair>>;

// How a figure changes from side a to side b.
struct Change {
  std::size_t blocks = 0;  // that know it
  // Means over windows. Without a block: 0.
  double a = 0;
  double b = 0;
  // Whether `change`, `low` and `high` are shares of a: so where every window has more than 0. Else they are
  // in the unit of the figure.
  bool relative = false;
  double change = 0;
  // The interval that holds the change with a probability of 95 %; nullopt with too few blocks for one (6).
  std::optional<double> low = std::nullopt;
  std::optional<double> high = std::nullopt;
  // The probability that chance alone makes some figure of the trial differ by as much as this one.
  double p = 1;
  bool shown = false;  // p is at most kLevel
};

// The change of each figure. Every series has the same number of blocks. The sides of a block came in random
// order, so without an effect its two windows could be exchanged. All figures of a block are exchanged
// together, and the largest of all changes, in units of its own spread, is the measure (Westfall and Young's
// single step). The interval is of the means of subsets of blocks (Hartigan 1969): it has the changes that
// such a test of one figure does not reject. Up to 12 blocks, every way to exchange is tried; else 4,999 that
// `seed` chooses, and the present one.
std::vector<Change> compare(const std::vector<Series>& figures, std::uint64_t seed);

}  // namespace berth::trial
