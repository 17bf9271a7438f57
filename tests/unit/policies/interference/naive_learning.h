// SPDX-License-Identifier: Apache-2.0
// docs/decisions/learning.md, written again without sums: it keeps every observation with its weight, and
// fits all of them anew for each prediction.
#pragma once

#include "model/learning.h"
#include "policies/interference/learning/fit.h"

#include <array>
#include <vector>

namespace berth::policies::testing {

struct NaiveFit {
  std::array<bool, 2> varies{};
  std::array<double, 2> slope{};  // in units of the response, the default where the feature hardly varies
  double alone = 0;               // not above 0: there is no model
  double pressure = 0;
};

// Weights of the ticks, by age.
std::vector<double> naive_weights(const std::vector<std::vector<model::Observation>>& ticks,
                                  double half_life_s);
// Of all ticks, each with its weight.
NaiveFit naive_fit(const std::vector<std::vector<model::Observation>>& ticks,
                   const std::vector<double>& weights, model::Response response,
                   const model::InterferenceModel& fallback);
// Root mean squared errors of predictions, each from the ticks before.
model::ModelErrors naive_errors(const std::vector<std::vector<model::Observation>>& ticks, double half_life_s,
                                model::Response response, const model::InterferenceModel& fallback);

}  // namespace berth::policies::testing
