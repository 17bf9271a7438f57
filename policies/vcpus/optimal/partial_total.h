// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/marks.h"
#include "policies/vcpus/optimal/ground.h"

#include <vector>

namespace berth::policies::optimal {

// The least total of a placement that still lacks some tenants.
class PartialTotal {
 public:
  explicit PartialTotal(const Ground& ground);

  // `places` and `owner` (by position) of the tenants placed so far; `vcpus` of all that are placed in the
  // end; `least_pressure` of those still missing. Where none is missing, `complete`, the result is the total
  // itself. Else it is a lower bound of the total, whatever places the missing ones get.
  double at_least(const Places& places, const std::vector<int>& owner, int vcpus, double least_pressure,
                  bool complete);

 private:
  double overlap(const Places& places);
  double request(const Places& places, const std::vector<int>& owner, double least_pressure, bool complete);
  void fill_pressures(const std::vector<int>& owner, int vcpus, double least_pressure, bool complete);
  int spared(const std::vector<int>& owner) const;

  const Ground& ground_;
  const Node& node_;
  std::vector<double> pressure_;     // by position
  std::vector<double> region_load_;  // by region
  Marks cores_;
  Marks tenants_;
};

}  // namespace berth::policies::optimal
