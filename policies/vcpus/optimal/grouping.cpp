// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/optimal/grouping.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace berth::policies::optimal {

namespace {

struct Group {
  std::vector<int> members;
  std::size_t widest = 0;
  double spread = 0;  // 0 where it cannot be divided
};

Point extent(const std::vector<Point>& points, const std::vector<int>& members) {
  Point low = points[members.front()];
  Point high = low;
  for (const int member : members) {
    for (std::size_t i = 0; i < low.size(); ++i) {
      low[i] = std::min(low[i], points[member][i]);
      high[i] = std::max(high[i], points[member][i]);
    }
  }
  return {high[0] - low[0], high[1] - low[1], high[2] - low[2]};
}

Group measured(std::vector<int> members, const std::vector<Point>& points, const std::vector<int>& counts,
               const Point& scale) {
  Group group{.members = std::move(members)};
  const Point width = extent(points, group.members);
  int count = 0;
  for (const int member : group.members) count += counts[member];
  for (std::size_t i = 0; i < width.size(); ++i) {
    if (scale[i] <= 0) continue;
    const double spread = width[i] / scale[i] * std::sqrt(count);
    if (spread <= group.spread) continue;
    group.spread = spread;
    group.widest = i;
  }
  return group;
}

}  // namespace

std::vector<std::vector<int>> group(const std::vector<Point>& points, const std::vector<int>& counts,
                                    int most) {
  std::vector<int> all(points.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  const Point scale = extent(points, all);
  std::vector<Group> groups{measured(std::move(all), points, counts, scale)};
  while (static_cast<int>(groups.size()) < most) {
    const auto wide = std::max_element(groups.begin(), groups.end(),
                                       [](const Group& a, const Group& b) { return a.spread < b.spread; });
    if (wide->spread <= 0) break;
    std::vector<int> low = std::move(wide->members);
    const std::size_t dimension = wide->widest;
    std::sort(low.begin(), low.end(), [&](int a, int b) {
      return points[a][dimension] != points[b][dimension] ? points[a][dimension] < points[b][dimension]
                                                          : a < b;
    });
    const auto middle = low.begin() + static_cast<std::ptrdiff_t>(low.size() / 2);
    std::vector<int> high(middle, low.end());
    low.erase(middle, low.end());
    *wide = measured(std::move(low), points, counts, scale);
    groups.push_back(measured(std::move(high), points, counts, scale));
  }
  std::vector<std::vector<int>> members;
  members.reserve(groups.size());
  for (Group& it : groups) members.push_back(std::move(it.members));
  return members;
}

}  // namespace berth::policies::optimal
