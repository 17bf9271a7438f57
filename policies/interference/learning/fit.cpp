// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/learning/fit.h"

#include <algorithm>
#include <cstddef>

namespace berth::policies {

using model::LearnedSums;
using model::Response;

namespace {

std::array<double, 2> coefficients(const model::InterferenceModel& model) { return {model.k1, model.k2}; }

double level_of_llc(const model::RowSums& rows, Response response) {
  // Differences have no level. Their spread is held against 0.
  return rows.n > 0 && response != Response::cpu ? rows.x[2] / rows.n : 0;
}

// The response without neighbours by the default model: of cpi and cost by least squares, of cpu by the mean.
double alone_by_default(const LearnedSums& sums, Response response, double pressure,
                        const std::array<double, 2>& k) {
  const double n = sums.rows.n;
  if (response == Response::cpu)
    return pressure / (1 + (k[0] * sums.level_sc + k[1] * sums.level_ss) / n / pressure);
  // y = alone * z with z = 1 + sum of k/pressure * x
  const std::array<double, 2> share{k[0] / pressure, k[1] / pressure};
  double zy = sums.rows.y;
  double zz = n;
  for (std::size_t i = 0; i < share.size(); ++i) {
    zy += share[i] * sums.rows.xy[i];
    zz += 2 * share[i] * sums.rows.x[i];
    for (std::size_t j = 0; j < share.size(); ++j) zz += share[i] * share[j] * sums.rows.xx[product_of(i, j)];
  }
  return zz > 0 ? zy / zz : 0;
}

}  // namespace

std::optional<Slopes> slopes(const LearnedSums& sums, Response response, const Regression& regression,
                             const model::InterferenceModel& fallback) {
  const double n = sums.rows.n;
  if (!(n > 0) || !(sums.level_u > 0)) return std::nullopt;
  const auto k = coefficients(fallback);
  const std::array<double, 2> level{sums.level_sc / n, sums.level_ss / n};
  Slopes result;
  result.pressure = sums.level_u / n;
  double rest = (response == Response::cpu ? sums.level_u : sums.rows.y) / n;
  double by_default = 1;
  for (std::size_t i = 0; i < level.size(); ++i) {
    if (regression.varies[i]) {
      rest -= regression.slope[i] * level[i];
    } else {
      by_default += k[i] * level[i] / result.pressure;
    }
  }
  result.rest = rest;
  result.alone = rest / by_default;
  if (!(result.alone > 0)) return std::nullopt;
  for (std::size_t i = 0; i < level.size(); ++i) {
    result.slope[i] = regression.varies[i] ? regression.slope[i] : k[i] * result.alone / result.pressure;
  }
  return result;
}

Predictor::Predictor(const LearnedSums& sums, Response response, const model::InterferenceModel& fallback)
    : centred_(response == Response::cpu) {
  const model::RowSums& rows = sums.rows;
  if (!(rows.n > 0)) return;
  if (!centred_)
    middle_ = {.y = rows.y / rows.n, .sc = rows.x[0] / rows.n, .ss = rows.x[1] / rows.n, .llc = {}};
  const auto fitted = slopes(sums, response, slopes_of(rows, 2, 0), fallback);
  if (fitted) slope_ = fitted->slope;
  if (sums.level_u > 0) {
    const auto k = coefficients(fallback);
    const double pressure = sums.level_u / rows.n;
    fallback_alone_ = alone_by_default(sums, response, pressure, k);
    for (std::size_t i = 0; i < k.size(); ++i) fallback_slope_[i] = k[i] * fallback_alone_ / pressure;
  }
  const model::RowSums& wide = sums.llc_rows;
  if (!(wide.n >= kWarmUp)) return;
  llc_middle_ = centred_ ? Row{}
                         : Row{.y = wide.y / wide.n,
                               .sc = wide.x[0] / wide.n,
                               .ss = wide.x[1] / wide.n,
                               .llc = wide.x[2] / wide.n};
  llc_slope_ = slopes_of(wide, 3, level_of_llc(wide, response)).slope;
}

double Predictor::model(const Row& row) const {
  return middle_.y + slope_[0] * (row.sc - middle_.sc) + slope_[1] * (row.ss - middle_.ss);
}

double Predictor::fallback(const Row& row) const {
  return (centred_ ? 0 : fallback_alone_) + fallback_slope_[0] * row.sc + fallback_slope_[1] * row.ss;
}

std::optional<double> Predictor::with_llc(const Row& row) const {
  if (!llc_middle_ || !row.llc) return std::nullopt;
  return llc_middle_->y + llc_slope_[0] * (row.sc - llc_middle_->sc) +
         llc_slope_[1] * (row.ss - llc_middle_->ss) +
         llc_slope_[2] * (*row.llc - llc_middle_->llc.value_or(0));
}

}  // namespace berth::policies
