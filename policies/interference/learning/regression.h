// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/learning.h"

#include <array>
#include <cstddef>
#include <optional>

namespace berth::policies {

inline constexpr std::size_t kFeatures = 3;  // sc, ss, llc

// A feature whose standard deviation is below this hardly varies. That of llc is a share of its mean.
inline constexpr double kLeastSpread = 0.02;

// Non-negative least squares of y on the features, with a free intercept.
struct Regression {
  // Whether the feature takes part. Those beyond `features`, and those that hardly vary, have slope 0.
  std::array<bool, kFeatures> varies{};
  std::array<double, kFeatures> slope{};  // 0 or more, in units of y
  // The middle of each slope's interval: the slope, or 0 or less where the bound holds the slope at 0.
  std::array<double, kFeatures> middle{};
  std::array<std::array<double, kFeatures>, kFeatures> covariance{};  // of the slopes
  double residual = 0;                                                // variance of y around the solution

  bool any() const { return varies[0] || varies[1] || varies[2]; }
};

// Solves it from sums, exactly: it tries every set of positive slopes. `features` is 2 or 3. `spent` is the
// weight of the means that the rows were made with, or 1 for the intercept. Sums of old observations weigh
// less, and count as that many fewer. `level_llc` is the mean that the spread of llc is held against.
Regression regress(const model::RowSums& sums, std::size_t features, double spent, double level_llc);
// The slopes and `varies` alone, which cost a fraction of it.
Regression slopes_of(const model::RowSums& sums, std::size_t features, double level_llc);

// The place of the product of two features in RowSums::xx.
constexpr std::size_t product_of(std::size_t a, std::size_t b) {
  const std::size_t low = a < b ? a : b;
  const std::size_t high = a < b ? b : a;
  return low * (5 - low) / 2 + high;
}
static_assert(product_of(0, 2) == 2 && product_of(1, 1) == 3 && product_of(2, 1) == 4 &&
              product_of(2, 2) == 5);

}  // namespace berth::policies
