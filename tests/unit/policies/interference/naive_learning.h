// SPDX-License-Identifier: Apache-2.0
// docs/decisions/learning.md, written again without sums: it keeps every observation with its weight, and
// fits all of them anew for each prediction.
#pragma once

#include "model/learning.h"
#include "policies/interference/learning/fit.h"

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace berth::policies::testing {

struct NaiveFit {
  std::array<bool, 2> varies{};
  std::array<double, 2> slope{};  // in units of the response, the default where the feature hardly varies
  double alone = 0;               // not above 0: there is no model
  double pressure = 0;
  // How far the fit of sums may be from these (naive_learning.cpp derives it).
  std::array<double, 2> slope_bound{};
  double alone_bound = 0;

  // Whether `alone` is above 0 in the fit of sums too; nullopt where rounding decides that.
  std::optional<bool> has_model() const;
  // k = slope / alone * pressure, and its bound. Of a fit that has a model.
  double coefficient(std::size_t feature) const { return slope[feature] / alone * pressure; }
  double coefficient_bound(std::size_t feature) const;
};

// Root mean squared errors, and how far those from sums may be from them.
struct NaiveErrors {
  model::ModelErrors errors;
  model::ModelErrors bounds;
};

// Of a figure that is made of all observations: for each, the additions and multiplications of its row, and
// for each tick the ageing of all before.
double operations_of(const std::vector<std::vector<model::Observation>>& ticks);

// Weights of the ticks, by age.
std::vector<double> naive_weights(const std::vector<std::vector<model::Observation>>& ticks,
                                  double half_life_s);
// Of all ticks, each with its weight.
NaiveFit naive_fit(const std::vector<std::vector<model::Observation>>& ticks,
                   const std::vector<double>& weights, model::Response response,
                   const model::InterferenceModel& fallback);
// Of predictions, each from the ticks before.
NaiveErrors naive_errors(const std::vector<std::vector<model::Observation>>& ticks, double half_life_s,
                         model::Response response, const model::InterferenceModel& fallback);

}  // namespace berth::policies::testing
