// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

namespace berth::policies::optimal {

using Point = std::array<double, 3>;

// Divides points into at most `most` groups of near ones: again and again it halves the group that spreads
// most, across its widest dimension. `counts`: how many things each point stands for. Returns the members of
// each group, by index.
std::vector<std::vector<int>> group(const std::vector<Point>& points, const std::vector<int>& counts,
                                    int most);

}  // namespace berth::policies::optimal
