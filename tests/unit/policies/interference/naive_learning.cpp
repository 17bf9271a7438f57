// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/naive_learning.h"

#include "tests/unit/rounding.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace berth::policies::testing {

using berth::testing::rounding;
using model::Observation;
using model::Response;

namespace {

// The ridge of the fit of sums, as a share of each feature's variance.
constexpr double kRidge = 1e-9;
// The bound of a figure that may be anything.
constexpr double kUnbounded = 1e100;

using Ticks = std::vector<std::vector<Observation>>;

struct Weighted {
  double w;
  double y;
  std::array<double, 2> x;
};

std::vector<Weighted> rows_of(const std::vector<Observation>& tick, double weight, Response response) {
  std::vector<Weighted> rows;
  for (const auto& seen : tick) rows.push_back({weight, seen.y, {seen.sc, seen.ss}});
  if (response != Response::cpu) return rows;
  Weighted mean{1, 0, {0, 0}};
  for (const auto& row : rows) {
    mean.y += row.y;
    mean.x[0] += row.x[0];
    mean.x[1] += row.x[1];
  }
  const auto count = static_cast<double>(rows.size());
  for (auto& row : rows) {
    row.y -= mean.y / count;
    row.x[0] -= mean.x[0] / count;
    row.x[1] -= mean.x[1] / count;
  }
  return rows;
}

std::vector<Weighted> rows_of(const Ticks& ticks, const std::vector<double>& weights, Response response) {
  std::vector<Weighted> rows;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const auto of_tick = rows_of(ticks[i], weights[i], response);
    rows.insert(rows.end(), of_tick.begin(), of_tick.end());
  }
  return rows;
}

template <typename Value>
double mean(const std::vector<Weighted>& rows, Value value) {
  double sum = 0;
  double weight = 0;
  for (const auto& row : rows) {
    sum += row.w * value(row);
    weight += row.w;
  }
  return sum / weight;
}

template <typename Value>
double level(const Ticks& ticks, const std::vector<double>& weights, Value value) {
  double sum = 0;
  double weight = 0;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    for (const auto& seen : ticks[i]) {
      sum += weights[i] * value(seen);
      weight += weights[i];
    }
  }
  return sum / weight;
}

std::array<double, 2> levels(const Ticks& ticks, const std::vector<double>& weights) {
  return {level(ticks, weights, [](const auto& seen) { return seen.sc; }),
          level(ticks, weights, [](const auto& seen) { return seen.ss; })};
}

// The features in units of their standard deviations, and y in its own.
struct Standard {
  std::array<double, 2> deviation{};
  double correlation = 0;          // of the features
  std::array<double, 2> with_y{};  // covariances
};

Standard standard(const std::vector<Weighted>& centred) {
  Standard result;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto square = [i](const Weighted& row) { return row.x[i] * row.x[i]; };
    result.deviation[i] = std::sqrt(mean(centred, square));
    if (result.deviation[i] > 0)
      result.with_y[i] =
          mean(centred, [i](const Weighted& row) { return row.x[i] * row.y; }) / result.deviation[i];
  }
  const double product = result.deviation[0] * result.deviation[1];
  if (product > 0)
    result.correlation = mean(centred, [](const Weighted& row) { return row.x[0] * row.x[1]; }) / product;
  return result;
}

// The slopes per standard deviation, none below 0. Where the best slopes of both features are not allowed,
// one of them is 0, and the other is the best for it alone; the feature that explains more gets it.
std::array<double, 2> best(const Standard& of, const std::array<bool, 2>& free) {
  const double r = of.correlation;
  if (free[0] && free[1] && r * r < 1) {
    const std::array<double, 2> both{(of.with_y[0] - r * of.with_y[1]) / (1 - r * r),
                                     (of.with_y[1] - r * of.with_y[0]) / (1 - r * r)};
    if (both[0] >= 0 && both[1] >= 0) return both;
  }
  const double first = free[0] ? std::max(0.0, of.with_y[0]) : 0;
  const double second = free[1] ? std::max(0.0, of.with_y[1]) : 0;
  return first >= second ? std::array<double, 2>{first, 0} : std::array<double, 2>{0, second};
}

// Sets the bounds of a fit. In units of standard deviations the least squares have the matrix C of
// correlations, and its least eigenvalue is m = 1 - |r|. A matrix that is off by d and a right side that is
// off by e then move the best slopes s, with or without a slope held at 0, by (d |s| + e) / (m - d) at most.
// The ridge is one part of d. The others are the roundings of sums of squares: the larger the mean is beside
// the deviation, the more they cancel each other.
void set_bounds(NaiveFit& fit, const Standard& of, const std::array<double, 2>& raw_square, double y_square,
                const std::array<double, 2>& at, double y, double by_default, double operations,
                const model::InterferenceModel& fallback) {
  double cancelled = 0;  // the worst mean square of a feature, in units of its variance
  for (std::size_t i = 0; i < 2; ++i) {
    if (fit.varies[i]) cancelled = std::max(cancelled, raw_square[i] / (of.deviation[i] * of.deviation[i]));
  }
  const double relative = rounding(operations, cancelled);
  const double matrix = kRidge + 2 * relative;
  const double side = 2 * rounding(operations, std::sqrt(cancelled * y_square));
  const double least = (fit.varies[0] && fit.varies[1] ? 1 - std::abs(of.correlation) : 1) - matrix;
  const double size = std::hypot(fit.slope[0] * of.deviation[0], fit.slope[1] * of.deviation[1]);
  double rest_bound = rounding(operations, y);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!fit.varies[i]) continue;
    fit.slope_bound[i] = least > matrix
                             ? (matrix * size + side) / least / of.deviation[i] + relative * fit.slope[i]
                             : kUnbounded;
    rest_bound += fit.slope_bound[i] * at[i] + rounding(operations, fit.slope[i] * at[i]);
  }
  fit.alone_bound = rest_bound / by_default + rounding(operations, std::abs(fit.alone));
  const std::array<double, 2> k{fallback.k1, fallback.k2};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!fit.varies[i])
      fit.slope_bound[i] =
          k[i] * fit.alone_bound / fit.pressure + rounding(operations, std::abs(fit.slope[i]));
  }
}

}  // namespace

std::vector<double> naive_weights(const Ticks& ticks, double half_life_s) {
  std::vector<double> weights(ticks.size(), 1);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    double age = 0;
    for (std::size_t j = i + 1; j < ticks.size(); ++j)
      age += std::min(600.0, ticks[j][0].time - ticks[j - 1][0].time);
    weights[i] = std::pow(0.5, age / half_life_s);
  }
  return weights;
}

std::optional<bool> NaiveFit::has_model() const {
  if (std::abs(alone) <= alone_bound) return std::nullopt;
  return alone > 0;
}

// k - k' = (s - s') / a' * p + s (a' - a) / (a a') * p, where a' is a - alone_bound at least.
double NaiveFit::coefficient_bound(std::size_t feature) const {
  return (slope_bound[feature] + slope[feature] / alone * alone_bound) / (alone - alone_bound) * pressure +
         rounding(100, coefficient(feature));
}

double operations_of(const Ticks& ticks) {
  std::size_t rows = 0;
  for (const auto& tick : ticks) rows += tick.size();
  return 20 + 4 * static_cast<double>(rows + ticks.size());
}

NaiveFit naive_fit(const Ticks& ticks, const std::vector<double>& weights, Response response,
                   const model::InterferenceModel& fallback) {
  NaiveFit fit;
  auto rows = rows_of(ticks, weights, response);
  const Weighted middle{1,
                        mean(rows, [](const auto& row) { return row.y; }),
                        {mean(rows, [](const auto& row) { return row.x[0]; }),
                         mean(rows, [](const auto& row) { return row.x[1]; })}};
  for (auto& row : rows) row = {row.w, row.y - middle.y, {row.x[0] - middle.x[0], row.x[1] - middle.x[1]}};
  const Standard of = standard(rows);
  for (std::size_t i = 0; i < 2; ++i) fit.varies[i] = of.deviation[i] > 0.02;
  const auto slopes = best(of, fit.varies);
  for (std::size_t i = 0; i < 2; ++i)
    if (fit.varies[i]) fit.slope[i] = slopes[i] / of.deviation[i];

  fit.pressure = level(ticks, weights, [](const auto& seen) { return seen.u; });
  const auto at = levels(ticks, weights);
  const std::array<double, 2> k{fallback.k1, fallback.k2};
  const double y = response == Response::cpu ? fit.pressure : middle.y;
  double rest = y;
  double by_default = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    if (fit.varies[i])
      rest -= fit.slope[i] * at[i];
    else
      by_default += k[i] * at[i] / fit.pressure;
  }
  fit.alone = rest / by_default;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!fit.varies[i]) fit.slope[i] = k[i] * fit.alone / fit.pressure;
  }
  set_bounds(fit, of,
             {level(ticks, weights, [](const auto& seen) { return seen.sc * seen.sc; }),
              level(ticks, weights, [](const auto& seen) { return seen.ss * seen.ss; })},
             level(ticks, weights, [](const auto& seen) { return seen.y * seen.y; }), at, y, by_default,
             operations_of(ticks), fallback);
  return fit;
}

NaiveErrors naive_errors(const Ticks& ticks, double half_life_s, Response response,
                         const model::InterferenceModel& fallback) {
  const auto now = naive_weights(ticks, half_life_s);
  const double operations = operations_of(ticks);
  double n = 0;
  model::ModelErrors sums;
  model::ModelErrors off;  // squares of what each prediction may be off by
  double most_y = 0;
  for (const auto& tick : ticks)
    for (const auto& seen : tick) most_y = std::max(most_y, seen.y);
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    const Ticks before(ticks.begin(), ticks.begin() + static_cast<std::ptrdiff_t>(i));
    const auto weights = naive_weights(before, half_life_s);
    double known = 0;
    for (std::size_t j = 0; j < i; ++j) known += weights[j] * static_cast<double>(before[j].size());
    if (known < 30) continue;
    const auto rows = rows_of(before, weights, response);
    const auto fit = naive_fit(before, weights, response, fallback);
    const double mean_y = mean(rows, [](const auto& row) { return row.y; });
    const double mean_sc = mean(rows, [](const auto& row) { return row.x[0]; });
    const double mean_ss = mean(rows, [](const auto& row) { return row.x[1]; });
    // The default model's response without neighbours.
    const std::array<double, 2> share{fallback.k1 / fit.pressure, fallback.k2 / fit.pressure};
    const auto rise = [&share](double sc, double ss) { return share[0] * sc + share[1] * ss; };
    double alone = 0;
    if (response == Response::cpu) {
      const auto at = levels(before, weights);
      alone = fit.pressure / (1 + rise(at[0], at[1]));
    } else {
      const auto z = [&rise](const Weighted& row) { return 1 + rise(row.x[0], row.x[1]); };
      alone = mean(rows, [&z](const auto& row) { return z(row) * row.y; }) /
              mean(rows, [&z](const auto& row) { return z(row) * z(row); });
    }
    for (const auto& row : rows_of(ticks[i], 1, response)) {
      const double rise_by_slopes = fit.slope[0] * (row.x[0] - mean_sc) + fit.slope[1] * (row.x[1] - mean_ss);
      const double model = fit.alone > 0 ? mean_y + rise_by_slopes : mean_y;
      const double by_default = alone * ((response == Response::cpu ? 0 : 1) + rise(row.x[0], row.x[1]));
      n += now[i];
      sums.model += now[i] * std::pow(row.y - model, 2);
      sums.fallback += now[i] * std::pow(row.y - by_default, 2);
      sums.constant += now[i] * std::pow(row.y - mean_y, 2);
      // Features are 1 at most.
      const double of_y = rounding(operations, most_y);
      double of_model = of_y + rounding(operations, std::abs(fit.slope[0]) + std::abs(fit.slope[1]));
      if (fit.has_model() != false)
        of_model += fit.slope_bound[0] * std::abs(row.x[0] - mean_sc) +
                    fit.slope_bound[1] * std::abs(row.x[1] - mean_ss);
      if (!fit.has_model()) of_model += std::abs(rise_by_slopes);
      off.model += now[i] * std::pow(of_model, 2);
      off.fallback += now[i] * std::pow(of_y + rounding(operations, alone * (1 + rise(1, 1))), 2);
      off.constant += now[i] * std::pow(of_y, 2);
    }
  }
  if (n == 0) return {};
  // By the triangle inequality, a root mean square is off by that of what its terms are off by.
  const auto root = [n](double square) { return std::sqrt(square / n); };
  const auto bound = [&](double square, double square_off) {
    return root(square_off) + rounding(operations, root(square));
  };
  return {.errors = {root(sums.model), root(sums.fallback), root(sums.constant)},
          .bounds = {bound(sums.model, off.model), bound(sums.fallback, off.fallback),
                     bound(sums.constant, off.constant)}};
}

}  // namespace berth::policies::testing
