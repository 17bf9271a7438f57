// SPDX-License-Identifier: Apache-2.0
// How far two computations of one figure may be apart by rounding alone.
//
// Each operation on doubles is off by half an epsilon of its result at most. So a result of n operations, in
// any order, is off by n / 2 epsilons of the sum of the magnitudes of its terms. Terms that cancel each other
// count in full. Two such results are then n epsilons apart at most. (The exact factor is (1 + epsilon / 2)^n
// - 1, which is no more than this for all n that tests have.)
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace berth::testing {

// `operations`: of the longer of both computations. `magnitude`: the sum of the magnitudes of its terms, 0 or
// more.
constexpr double rounding(double operations, double magnitude) {
  return operations * std::numeric_limits<double>::epsilon() * magnitude;
}

// Where all terms are 0 or more, the figure itself is the sum of their magnitudes.
inline bool same_sum(double a, double b, double operations) {
  return std::abs(a - b) <= rounding(operations, std::max(std::abs(a), std::abs(b)));
}

}  // namespace berth::testing
