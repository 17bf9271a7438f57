// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/learning/regression.h"

#include <algorithm>
#include <cmath>

namespace berth::policies {

namespace {

// Added to each feature's variance, as a share of it. So features that cannot be told apart have a solution,
// with a wide interval.
constexpr double kRidge = 1e-9;
// Sums of squares are rounded to about 1e-16 of themselves.
constexpr double kRounding = 1e-13;

using Square = std::array<std::array<double, kFeatures>, kFeatures>;

// Variances and covariances, with features in units of their standard deviations.
struct Scaled {
  std::array<bool, kFeatures> varies{};
  std::array<double, kFeatures> deviation{};
  Square correlation{};
  std::array<double, kFeatures> with_y{};
  double y_variance = 0;
};

Scaled scaled(const model::RowSums& sums, std::size_t features, double level_llc) {
  Scaled result;
  if (!(sums.n > 0)) return result;
  const double mean_y = sums.y / sums.n;
  result.y_variance = std::max(0.0, sums.yy / sums.n - mean_y * mean_y);
  for (std::size_t i = 0; i < features; ++i) {
    const double mean = sums.x[i] / sums.n;
    const double square = sums.xx[product_of(i, i)] / sums.n;
    const double variance = std::max(0.0, square - mean * mean);
    const double least = i == 2 ? kLeastSpread * level_llc : kLeastSpread;
    result.deviation[i] = std::sqrt(variance);
    result.varies[i] = result.deviation[i] > least && variance > kRounding * square;
  }
  for (std::size_t i = 0; i < features; ++i) {
    if (!result.varies[i]) continue;
    const double mean = sums.x[i] / sums.n;
    result.with_y[i] = (sums.xy[i] / sums.n - mean * mean_y) / result.deviation[i];
    for (std::size_t j = 0; j < features; ++j) {
      if (!result.varies[j]) continue;
      const double covariance = sums.xx[product_of(i, j)] / sums.n - mean * (sums.x[j] / sums.n);
      result.correlation[i][j] =
          i == j ? 1 + kRidge
                 : std::clamp(covariance / (result.deviation[i] * result.deviation[j]), -1.0, 1.0);
    }
  }
  return result;
}

using Chosen = std::array<bool, kFeatures>;

// The inverse of the correlations of the chosen features; 0 for all others. nullopt where rounding has made
// them no correlations of any rows.
std::optional<Square> inverse(const Scaled& from, const Chosen& chosen) {
  Square left = from.correlation;
  Square right{};
  for (std::size_t i = 0; i < kFeatures; ++i) {
    if (chosen[i]) right[i][i] = 1;
  }
  for (std::size_t pivot = 0; pivot < kFeatures; ++pivot) {
    if (!chosen[pivot]) continue;
    const double divisor = left[pivot][pivot];
    if (!(divisor >= kRidge / 2)) return std::nullopt;
    for (std::size_t column = 0; column < kFeatures; ++column) {
      left[pivot][column] /= divisor;
      right[pivot][column] /= divisor;
    }
    for (std::size_t row = 0; row < kFeatures; ++row) {
      if (row == pivot || !chosen[row]) continue;
      const double factor = left[row][pivot];
      for (std::size_t column = 0; column < kFeatures; ++column) {
        left[row][column] -= factor * left[pivot][column];
        right[row][column] -= factor * right[pivot][column];
      }
    }
  }
  return right;
}

// The slopes of the chosen features, in units of y per standard deviation.
std::array<double, kFeatures> solution(const Square& inverted, const Scaled& from, const Chosen& chosen) {
  std::array<double, kFeatures> slopes{};
  for (std::size_t i = 0; i < kFeatures; ++i) {
    for (std::size_t j = 0; j < kFeatures; ++j) {
      if (chosen[i] && chosen[j]) slopes[i] += inverted[i][j] * from.with_y[j];
    }
  }
  return slopes;
}

// The part of y's variance that the slopes explain. They solve the normal equations of their features.
double explained(const std::array<double, kFeatures>& slopes, const Scaled& from) {
  double sum = 0;
  for (std::size_t i = 0; i < kFeatures; ++i) sum += slopes[i] * from.with_y[i];
  return sum;
}

// The best of the solutions of all sets of features that has no negative slope.
std::array<double, kFeatures> best_slopes(const Scaled& from) {
  std::array<double, kFeatures> best{};
  double most = 0;
  for (unsigned set = 1; set < (1U << kFeatures); ++set) {
    Chosen chosen{};
    bool possible = true;
    for (std::size_t i = 0; i < kFeatures; ++i) {
      chosen[i] = ((set >> i) & 1U) != 0;
      possible = possible && (!chosen[i] || from.varies[i]);
    }
    if (!possible) continue;
    const auto inverted = inverse(from, chosen);
    if (!inverted) continue;
    const auto slopes = solution(*inverted, from, chosen);
    if (std::any_of(slopes.begin(), slopes.end(), [](double slope) { return !(slope >= 0); })) continue;
    if (const double part = explained(slopes, from); part > most) {
      most = part;
      best = slopes;
    }
  }
  return best;
}

Regression in_units(const Scaled& from, const std::array<double, kFeatures>& slopes) {
  Regression result;
  result.varies = from.varies;
  for (std::size_t i = 0; i < kFeatures; ++i) {
    if (from.varies[i]) result.slope[i] = slopes[i] / from.deviation[i];
  }
  return result;
}

}  // namespace

Regression slopes_of(const model::RowSums& sums, std::size_t features, double level_llc) {
  const Scaled from = scaled(sums, features, level_llc);
  return in_units(from, best_slopes(from));
}

Regression regress(const model::RowSums& sums, std::size_t features, double spent, double level_llc) {
  const Scaled from = scaled(sums, features, level_llc);
  const auto slopes = best_slopes(from);
  Regression result = in_units(from, slopes);
  const auto inverted = inverse(from, from.varies);
  if (!inverted || !result.any()) return result;

  const auto free = static_cast<double>(std::count(from.varies.begin(), from.varies.end(), true));
  const double freedom = std::max(1.0, sums.n - spent - free);
  const double residual = std::max(0.0, from.y_variance - explained(slopes, from)) * sums.n / freedom;
  result.residual = residual;
  const auto unbounded = solution(*inverted, from, from.varies);
  for (std::size_t i = 0; i < kFeatures; ++i) {
    if (!from.varies[i]) continue;
    result.middle[i] = slopes[i] > 0 ? result.slope[i] : std::min(0.0, unbounded[i]) / from.deviation[i];
    for (std::size_t j = 0; j < kFeatures; ++j) {
      if (from.varies[j])
        result.covariance[i][j] =
            residual * (*inverted)[i][j] / sums.n / (from.deviation[i] * from.deviation[j]);
    }
  }
  return result;
}

}  // namespace berth::policies
