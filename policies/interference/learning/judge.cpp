// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/learning/fit.h"
#include "policies/interference/learning/sums.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace berth::policies {

using model::LearnedModel;
using model::LearnedSums;
using model::ProfileKey;
using model::Response;

namespace {

// An error at most this share of another one is clearly below it.
constexpr double kClearlyBelow = 0.95;
// A busy neighbour would cost ten vCPUs for each own one: no host shows that.
constexpr double kMostCoefficient = 10;
// The two-sided 90 % quantile of the normal distribution.
constexpr double kNinety = 1.6448536269514722;
// This share of min_samples must have been predicted before they were learned.
constexpr double kPredicted = 0.5;

double root_of_mean(double squares, double n) { return n > 0 ? std::sqrt(std::max(0.0, squares / n)) : 0; }

std::optional<model::ModelErrors> errors_of(const LearnedSums& sums) {
  const model::ErrorSums& errors = sums.errors;
  if (!(errors.n > 0)) return std::nullopt;
  return model::ModelErrors{.model = root_of_mean(errors.model, errors.n),
                            .fallback = root_of_mean(errors.fallback, errors.n),
                            .constant = root_of_mean(errors.constant, errors.n)};
}

double percent_below(double error, double other) { return other > 0 ? 100 * (1 - error / other) : 0; }

struct Verdict {
  bool accepted = false;
  std::string why;
};

std::string refusal_by_error(const model::ModelErrors& errors) {
  const auto is_clearly_below = [&](double other) { return errors.model <= kClearlyBelow * other; };
  const auto text = [&](const char* name, double other) {
    return fmt::format("its error {:.4g} is not 5 % below the {}'s {:.4g}", errors.model, name, other);
  };
  if (!is_clearly_below(errors.fallback)) return text("default model", errors.fallback);
  if (!is_clearly_below(errors.constant)) return text("constant", errors.constant);
  return "";
}

// Why sums have no model that can be used; "" where they have one. `fitted` is null where they determine
// none.
std::string refusal(const LearnedSums& sums, const Regression& regression, const Slopes* fitted,
                    const LearningSettings& settings) {
  if (sums.rows.n < settings.min_samples)
    return fmt::format("{:.0f} of {} observations", std::floor(sums.rows.n), settings.min_samples);
  if (!regression.any()) return "the pressure of its neighbours hardly varies";
  if (fitted == nullptr) return "the response without neighbours would not be above 0";
  const double unit = fitted->pressure / fitted->alone;
  if (std::max(fitted->slope[0], fitted->slope[1]) * unit > kMostCoefficient)
    return fmt::format("a coefficient above {} is not plausible", kMostCoefficient);
  if (sums.errors.n < kPredicted * settings.min_samples)
    return fmt::format("{:.0f} predictions, {:.0f} are needed", std::floor(sums.errors.n),
                       std::ceil(kPredicted * settings.min_samples));
  return refusal_by_error(*errors_of(sums));
}

Verdict verdict(const LearnedSums& sums, const Regression& regression, const Slopes* fitted,
                const LearningSettings& settings) {
  std::string why = refusal(sums, regression, fitted, settings);
  if (!why.empty()) return {.accepted = false, .why = std::move(why)};
  const auto errors = *errors_of(sums);
  return {.accepted = true,
          .why = fmt::format("its error {:.4g} is {:.0f} % below the default model's and {:.0f} % below the "
                             "constant's",
                             errors.model, percent_below(errors.model, errors.fallback),
                             percent_below(errors.model, errors.constant))};
}

model::Interval around(double middle, double variance) {
  const double half = kNinety * std::sqrt(std::max(0.0, variance));
  return {.low = std::max(0.0, middle - half), .high = std::max(0.0, middle + half)};
}

// Of slope / y0 to the first order, as y0 follows from the same slopes: y0 is in proportion to
// mean(y) - K1 * mean(sc) - K2 * mean(ss). The load makes the mean of `cpu`, which has no error here.
double variance_of_share(const LearnedSums& sums, Response response, const Regression& regression,
                         const Slopes& fitted, std::size_t feature) {
  const std::array<double, 2> level{sums.level_sc / sums.rows.n, sums.level_ss / sums.rows.n};
  const double share = fitted.slope[feature] / fitted.rest;
  std::array<double, 2> slope{};
  for (std::size_t i = 0; i < slope.size(); ++i) slope[i] = (i == feature ? 1 : 0) + share * level[i];
  double variance = response == Response::cpu ? 0 : share * share * regression.residual / sums.rows.n;
  for (std::size_t i = 0; i < slope.size(); ++i) {
    for (std::size_t j = 0; j < slope.size(); ++j)
      variance += slope[i] * slope[j] * regression.covariance[i][j];
  }
  return variance / (fitted.alone * fitted.alone);
}

model::Coefficient coefficient(const LearnedSums& sums, Response response, const Regression& regression,
                               const Slopes& fitted, std::size_t feature) {
  const double unit = fitted.pressure / fitted.alone;
  model::Coefficient result{.value = fitted.slope[feature] * unit, .interval = std::nullopt};
  if (regression.varies[feature]) {
    const double variance = variance_of_share(sums, response, regression, fitted, feature);
    result.interval = around(regression.middle[feature] * unit, fitted.pressure * fitted.pressure * variance);
  }
  return result;
}

// The default, as far as the observations permit it, where they refute it: the constant predicts clearly
// better. Its coefficients are then the upper ends of the intervals, if these are lower.
std::optional<LearnedModel::Bounds> bounds_of(const LearnedSums& sums, const LearnedModel& model,
                                              const LearningSettings& settings) {
  if (model.accepted || !model.fit || sums.rows.n < settings.min_samples ||
      sums.errors.n < kPredicted * settings.min_samples)
    return std::nullopt;
  if (!(model.errors->constant <= kClearlyBelow * model.errors->fallback)) return std::nullopt;
  const auto lower = [](double by_default, const model::Coefficient& k) {
    return k.interval ? std::min(by_default, k.interval->high) : by_default;
  };
  const model::InterferenceModel& by_default = settings.default_model;
  const LearnedModel::Bounds bounds{.k1 = lower(by_default.k1, model.fit->k1),
                                    .k2 = lower(by_default.k2, model.fit->k2)};
  if (bounds == LearnedModel::Bounds{.k1 = by_default.k1, .k2 = by_default.k2}) return std::nullopt;
  return bounds;
}

// Whether llc lowers the error by another 5 %.
bool llc_enters(const LearnedSums& sums, const LearningSettings& settings) {
  return sums.llc_rows.n >= settings.min_samples && sums.errors.llc_n >= kPredicted * settings.min_samples &&
         root_of_mean(sums.errors.llc_with, sums.errors.llc_n) <=
             kClearlyBelow * root_of_mean(sums.errors.llc_without, sums.errors.llc_n);
}

std::optional<model::CacheCoefficient> cache_coefficient(const LearnedSums& sums, Response response,
                                                         const Slopes& fitted,
                                                         const LearningSettings& settings) {
  if (!llc_enters(sums, settings)) return std::nullopt;
  const double level = response == Response::cpu ? 0 : sums.llc_rows.x[2] / sums.llc_rows.n;
  const auto wide = regress(sums.llc_rows, kFeatures, sums.spent, level);
  if (!wide.varies[2]) return std::nullopt;
  const double unit = fitted.pressure / fitted.alone;
  return model::CacheCoefficient{
      .value = wide.slope[2] * unit,
      .interval = around(wide.middle[2] * unit, unit * unit * wide.covariance[2][2])};
}

}  // namespace

LearnedModel judge(const ProfileKey& key, const LearnedSums& sums, const LearningSettings& settings) {
  const auto regression = regress(sums.rows, 2, sums.spent, 0);
  const auto fitted = slopes(sums, key.response, regression, settings.default_model);
  auto [accepted, why] = verdict(sums, regression, fitted ? &*fitted : nullptr, settings);
  LearnedModel result;
  result.service = key.service;
  result.response = key.response;
  result.n = sums.rows.n;
  result.accepted = accepted;
  result.why = std::move(why);
  result.errors = errors_of(sums);
  if (fitted && regression.any()) {
    result.fit = LearnedModel::Fit{
        .b0 = fitted->pressure,
        .alone = fitted->alone,
        .k1 = coefficient(sums, key.response, regression, *fitted, 0),
        .k2 = coefficient(sums, key.response, regression, *fitted, 1),
        .k3 = accepted ? cache_coefficient(sums, key.response, *fitted, settings) : std::nullopt};
  }
  result.bounded = bounds_of(sums, result, settings);
  return result;
}

bool is_accepted(const ProfileKey& key, const LearnedSums& sums, const LearningSettings& settings) {
  if (sums.rows.n < settings.min_samples) return false;
  const auto regression = slopes_of(sums.rows, 2, 0);
  const auto fitted = slopes(sums, key.response, regression, settings.default_model);
  return refusal(sums, regression, fitted ? &*fitted : nullptr, settings).empty();
}

std::vector<LearnedModel> judge_all(const model::Profiles& own, const model::Profiles& priors,
                                    const LearningSettings& settings) {
  static const LearnedSums kNoSums;
  std::vector<LearnedModel> models;
  const auto add = [&](const ProfileKey& key, const LearnedSums& sums, const LearnedSums* prior) {
    models.push_back(judge(key, with_prior(sums, prior, settings.min_samples), settings));
  };
  for (const auto& [key, sums] : own) add(key, sums, find(priors, key));
  for (const auto& [key, prior] : priors) {
    if (find(own, key) == nullptr) add(key, kNoSums, &prior);
  }
  std::sort(models.begin(), models.end(), [](const LearnedModel& a, const LearnedModel& b) {
    return ProfileKey{a.service, a.response} < ProfileKey{b.service, b.response};
  });
  return models;
}

LearningSettings learning_settings(const InterferenceSettings& settings) {
  return {.half_life_s = settings.half_life_s,
          .min_samples = settings.min_samples,
          .default_model = settings.default_model};
}

std::optional<model::InterferenceModel> interference_model(const LearnedModel& model) {
  if (!model.fit) return std::nullopt;
  if (model.bounded)
    return model::InterferenceModel{.b0 = model.fit->b0, .k1 = model.bounded->k1, .k2 = model.bounded->k2};
  if (!model.accepted) return std::nullopt;
  return model::InterferenceModel{.b0 = model.fit->b0, .k1 = model.fit->k1.value, .k2 = model.fit->k2.value};
}

std::string summary(const LearnedModel& model) {
  const char* response = model::to_string(model.response);
  if (model.bounded) {
    return fmt::format(
        "{:.0f} observations by {} refute the default, and permit k1 {:.3g} and k2 {:.3g} at most; no model "
        "is accepted ({})",
        model.n, response, model.bounded->k1, model.bounded->k2, model.why);
  }
  if (!model.accepted || !model.fit)
    return fmt::format("nothing usable is learned by {}: {}", response, model.why);
  const auto text = [](const char* name, const model::Coefficient& k) {
    return k.interval ? fmt::format("{} in {:.3g}..{:.3g}", name, k.interval->low, k.interval->high)
                      : fmt::format("{} by default", name);
  };
  return fmt::format("learned by {} from {:.0f} observations: {}; {}, {}", response, model.n, model.why,
                     text("k1", model.fit->k1), text("k2", model.fit->k2));
}

const LearnedModel* model_in_use(const std::vector<LearnedModel>& models, const std::string& service) {
  const LearnedModel* first = nullptr;
  const LearnedModel* bounded = nullptr;
  for (const LearnedModel& model : models) {
    if (model.service != service) continue;
    if (model.accepted) return &model;
    if (bounded == nullptr && model.bounded) bounded = &model;
    if (first == nullptr && model.n > 0) first = &model;
  }
  return bounded != nullptr ? bounded : first;
}

}  // namespace berth::policies
