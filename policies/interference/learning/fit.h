// SPDX-License-Identifier: Apache-2.0
// From sums to a model (docs/decisions/learning.md, "Estimator" and "Acceptance").
#pragma once

#include "model/learning.h"
#include "model/snapshot.h"
#include "policies/interference/learning/regression.h"
#include "policies/interference/settings.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace berth::policies {

// Predictions from fewer observations say nothing about a model.
inline constexpr double kWarmUp = 30;

struct LearningSettings {
  double half_life_s = 21600;
  int min_samples = 300;
  model::InterferenceModel default_model{};
};
LearningSettings learning_settings(const InterferenceSettings& settings);

// A model of two features in units of the response.
struct Slopes {
  double alone = 0;     // y0, the response without neighbours; above 0
  double rest = 0;      // the response without the neighbours whose pressure varies
  double pressure = 0;  // u_s, mean cores used per vCPU; above 0
  // Of sc and ss. Where the feature hardly varies, it is the default in units of the response.
  std::array<double, 2> slope{};
};

// nullopt where there is no observation, or the response without neighbours would not be above 0.
std::optional<Slopes> slopes(const model::LearnedSums& sums, model::Response response,
                             const Regression& regression, const model::InterferenceModel& fallback);

// A row that sums are made of: an observation, or for the response `cpu` its differences from the tick's
// mean.
struct Row {
  double y = 0;
  double sc = 0;
  double ss = 0;
  std::optional<double> llc;
};

// Predicts rows from the sums of earlier ones.
class Predictor {
 public:
  Predictor(const model::LearnedSums& sums, model::Response response,
            const model::InterferenceModel& fallback);

  // With two features; the mean where the sums determine no model.
  double model(const Row& row) const;
  double fallback(const Row& row) const;
  double constant() const { return middle_.y; }
  // With three. nullopt where the row does not know llc, or too few earlier ones did.
  std::optional<double> with_llc(const Row& row) const;

 private:
  Row middle_;  // means of the rows
  std::array<double, 2> slope_{};
  double fallback_alone_ = 0;
  std::array<double, 2> fallback_slope_{};
  bool centred_ = false;  // rows are differences
  std::optional<Row> llc_middle_;
  std::array<double, kFeatures> llc_slope_{};
};

// The model of these sums, whether it is accepted, and why.
model::LearnedModel judge(const model::ProfileKey& key, const model::LearnedSums& sums,
                          const LearningSettings& settings);
// Whether judge() would accept it; costs a fraction of it.
bool is_accepted(const model::ProfileKey& key, const model::LearnedSums& sums,
                 const LearningSettings& settings);

// All models, in the order of their keys. Priors are added where they count.
std::vector<model::LearnedModel> judge_all(const model::Profiles& own, const model::Profiles& priors,
                                           const LearningSettings& settings);

// The model that a service uses: of the first response that has an accepted one. Without any, the first that
// bounds the default, or else the first with observations, which is not used. nullptr where `models` has none
// of the service.
const model::LearnedModel* model_in_use(const std::vector<model::LearnedModel>& models,
                                        const std::string& service);
// The coefficients for the policies; nullopt where the model is not accepted and does not bound the default.
std::optional<model::InterferenceModel> interference_model(const model::LearnedModel& model);
// Says in one line whether the model is used and why, with n, the errors and the intervals.
std::string summary(const model::LearnedModel& model);

}  // namespace berth::policies
