// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/naive_learning.h"

#include <algorithm>
#include <cmath>

namespace berth::policies::testing {

using model::Observation;
using model::Response;

namespace {

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

// Coordinate descent: one slope after the other to its best value, but not below 0.
std::array<double, 2> descend(std::vector<Weighted> rows, const std::array<bool, 2>& free) {
  std::array<double, 2> slope{};
  for (int round = 0; round < 20000; ++round) {
    double moved = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!free[i]) continue;
      double along = 0;
      double square = 0;
      for (const auto& row : rows) {
        along += row.w * row.x[i] * (row.y - slope[0] * row.x[0] - slope[1] * row.x[1] + slope[i] * row.x[i]);
        square += row.w * row.x[i] * row.x[i];
      }
      const double best = std::max(0.0, along / square);
      moved += std::abs(best - slope[i]);
      slope[i] = best;
    }
    if (moved < 1e-15) break;
  }
  return slope;
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

NaiveFit naive_fit(const Ticks& ticks, const std::vector<double>& weights, Response response,
                   const model::InterferenceModel& fallback) {
  NaiveFit fit;
  auto rows = rows_of(ticks, weights, response);
  const Weighted middle{1,
                        mean(rows, [](const auto& row) { return row.y; }),
                        {mean(rows, [](const auto& row) { return row.x[0]; }),
                         mean(rows, [](const auto& row) { return row.x[1]; })}};
  for (auto& row : rows) row = {row.w, row.y - middle.y, {row.x[0] - middle.x[0], row.x[1] - middle.x[1]}};
  for (std::size_t i = 0; i < 2; ++i)
    fit.varies[i] = std::sqrt(mean(rows, [i](const auto& row) { return row.x[i] * row.x[i]; })) > 0.02;
  fit.slope = descend(rows, fit.varies);

  fit.pressure = level(ticks, weights, [](const auto& seen) { return seen.u; });
  const auto at = levels(ticks, weights);
  const std::array<double, 2> k{fallback.k1, fallback.k2};
  double rest = response == Response::cpu ? fit.pressure : middle.y;
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
  return fit;
}

model::ModelErrors naive_errors(const Ticks& ticks, double half_life_s, Response response,
                                const model::InterferenceModel& fallback) {
  const auto now = naive_weights(ticks, half_life_s);
  double n = 0;
  model::ModelErrors sums;
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
      const double model =
          fit.alone > 0 ? mean_y + fit.slope[0] * (row.x[0] - mean_sc) + fit.slope[1] * (row.x[1] - mean_ss)
                        : mean_y;
      const double by_default = alone * ((response == Response::cpu ? 0 : 1) + rise(row.x[0], row.x[1]));
      n += now[i];
      sums.model += now[i] * std::pow(row.y - model, 2);
      sums.fallback += now[i] * std::pow(row.y - by_default, 2);
      sums.constant += now[i] * std::pow(row.y - mean_y, 2);
    }
  }
  if (n == 0) return {};
  return {std::sqrt(sums.model / n), std::sqrt(sums.fallback / n), std::sqrt(sums.constant / n)};
}

}  // namespace berth::policies::testing
