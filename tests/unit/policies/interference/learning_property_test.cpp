// SPDX-License-Identifier: Apache-2.0
// Learning from sums against the restatement that keeps every observation.
#include "policies/interference/learning/learn.h"
#include "policies/interference/learning/sums.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/interference/naive_learning.h"
#include "tests/unit/policies/seeds.h"
#include "tests/unit/rounding.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

using model::Observation;
using model::Response;

namespace {

struct Case {
  model::ProfileKey key;
  std::vector<std::vector<Observation>> ticks;
  LearningSettings settings;
};

// Few ticks, with features that follow each other, stand still or are free of each other, and with gaps.
Case random_case(std::uint64_t seed) {
  testing::Draws draws(seed);
  Case result;
  result.key = {"web", model::kResponses[static_cast<std::size_t>(draws.number(0, 2))]};
  result.settings.half_life_s = draws.number(500, 50000);
  result.settings.min_samples = draws.number(10, 120);
  result.settings.default_model = {0, draws.fraction(), draws.fraction()};
  const bool no_smt = draws.chance(0.2);
  const bool follows = draws.chance(0.2);
  const int kind = draws.number(0, 2);  // the sign of the true slopes
  const int instances = draws.number(result.key.response == Response::cpu ? 2 : 1, 4);
  double time = 1790000000;
  for (int i = draws.number(8, 50); i > 0; --i) {
    time += draws.chance(0.05) ? draws.number(600, 100000) : draws.number(1, 20);
    auto& tick = result.ticks.emplace_back();
    for (int j = 0; j < instances; ++j) {
      Observation seen;
      seen.service = "web";
      seen.instance = std::to_string(j);
      seen.time = time;
      seen.response = result.key.response;
      seen.sc = no_smt ? 0 : draws.fraction();
      seen.ss = follows ? 0.5 * seen.sc + 0.2 * draws.fraction() : draws.fraction();
      const double slow = kind == 0 ? 1 + seen.sc - 0.5 * seen.ss : kind == 1 ? 1 + seen.sc + seen.ss : 1;
      seen.u = (0.1 + draws.fraction()) * slow;
      seen.y = seen.response == Response::cpu ? seen.u : (1 + 0.2 * draws.fraction()) * slow;
      tick.push_back(seen);
    }
  }
  return result;
}

bool within(double a, double b, double bound) { return std::abs(a - b) <= bound; }

model::LearnedSums learned(const Case& from) {
  model::LearnedSums sums;
  for (const auto& tick : from.ticks) {
    auto step = learn(from.key, std::move(sums), nullptr, tick, from.settings);
    RC_ASSERT(step.set_aside.empty());
    if (step.changed) RC_DISCARD("the restatement forgets nothing at once");
    sums = std::move(step.sums);
  }
  return sums;
}

RC_GTEST_PROP(Learning, SumsGiveTheModelThatAllObservationsGive, ()) {
  const auto given = random_case(*testing::any_seed());
  const auto sums = learned(given);
  const auto weights = testing::naive_weights(given.ticks, given.settings.half_life_s);
  const auto expected =
      testing::naive_fit(given.ticks, weights, given.key.response, given.settings.default_model);
  const auto model = judge(given.key, sums, given.settings);
  const bool any = expected.varies[0] || expected.varies[1];
  if (!expected.has_model()) RC_DISCARD("rounding decides whether there is a model");
  RC_ASSERT(model.fit.has_value() == (any && *expected.has_model()));
  if (!model.fit) return;
  RC_ASSERT(within(model.fit->alone, expected.alone, expected.alone_bound));
  RC_ASSERT(berth::testing::same_sum(model.fit->b0, expected.pressure, testing::operations_of(given.ticks)));
  RC_ASSERT(within(model.fit->k1.value, expected.coefficient(0), expected.coefficient_bound(0)));
  RC_ASSERT(within(model.fit->k2.value, expected.coefficient(1), expected.coefficient_bound(1)));
  RC_ASSERT(model.fit->k1.interval.has_value() == expected.varies[0]);
  RC_ASSERT(model.fit->k2.interval.has_value() == expected.varies[1]);
}

RC_GTEST_PROP(Learning, ErrorsAreThoseOfPredictionsFromAllEarlierObservations, ()) {
  const auto given = random_case(*testing::any_seed());
  const auto sums = learned(given);
  const auto [expected, bounds] = testing::naive_errors(given.ticks, given.settings.half_life_s,
                                                        given.key.response, given.settings.default_model);
  const auto errors = judge(given.key, sums, given.settings).errors.value_or(model::ModelErrors{});
  RC_ASSERT(within(errors.model, expected.model, bounds.model));
  RC_ASSERT(within(errors.fallback, expected.fallback, bounds.fallback));
  RC_ASSERT(within(errors.constant, expected.constant, bounds.constant));
}

// Both sides compare the same figures, so that rounding decides nothing.
RC_GTEST_PROP(Learning, AcceptanceIsWhatThePageSays, ()) {
  const auto given = random_case(*testing::any_seed());
  const auto sums = learned(given);
  const auto model = judge(given.key, sums, given.settings);
  RC_ASSERT(model.accepted == is_accepted(given.key, sums, given.settings));
  const bool expected = model.n >= given.settings.min_samples && model.fit && model.errors &&
                        model.fit->k1.value <= 10 && model.fit->k2.value <= 10 &&
                        sums.errors.n >= given.settings.min_samples / 2.0 &&
                        model.errors->model <= 0.95 * model.errors->fallback &&
                        model.errors->model <= 0.95 * model.errors->constant;
  RC_ASSERT(model.accepted == expected);
  RC_CLASSIFY(model.accepted);
}

// An end of an interval is the coefficient and an amount, and rounding keeps the order of sums.
RC_GTEST_PROP(Learning, IntervalsHoldTheirCoefficients, ()) {
  const auto given = random_case(*testing::any_seed());
  const auto model = judge(given.key, learned(given), given.settings);
  if (!model.fit) return;
  for (const auto& k : {model.fit->k1, model.fit->k2}) {
    RC_ASSERT(k.value >= 0);
    if (!k.interval) continue;
    RC_ASSERT(k.interval->low >= 0);
    RC_ASSERT(k.interval->low <= k.value);
    RC_ASSERT(k.value <= k.interval->high);
  }
}

RC_GTEST_PROP(Learning, MergedSumsAreTheSumsOfAll, ()) {
  auto given = random_case(*testing::any_seed());
  const std::size_t hosts = 1 + *rc::gen::inRange<std::size_t>(1, 5);
  const auto whole = learned(given);
  // Each host saw some of the ticks; all are of the same age when they are merged.
  model::LearnedSums merged;
  for (std::size_t host = 0; host < hosts; ++host) {
    model::LearnedSums own;
    double time = 0;
    for (std::size_t i = 0; i < given.ticks.size(); ++i) {
      const double age = i == 0 ? 0 : std::min(600.0, given.ticks[i][0].time - time);
      time = given.ticks[i][0].time;
      scale(own, std::exp2(-age / given.settings.half_life_s));
      own.time = time;
      if (i % hosts != host) continue;
      auto step = learn(given.key, std::move(own), nullptr, given.ticks[i], given.settings);
      if (step.changed) RC_DISCARD("a host forgot");
      own = std::move(step.sums);
    }
    merge(merged, own);
  }
  const double operations = testing::operations_of(given.ticks);
  RC_ASSERT(berth::testing::same_sum(merged.rows.n, whole.rows.n, operations));
  for (std::size_t i = 0; i < kFeatures; ++i) {
    for (std::size_t j = i; j < kFeatures; ++j) {
      // The magnitudes of products add up to this at most (Cauchy and Schwarz).
      const double magnitude =
          std::sqrt(whole.rows.xx[product_of(i, i)]) * std::sqrt(whole.rows.xx[product_of(j, j)]);
      RC_ASSERT(within(merged.rows.xx[product_of(i, j)], whole.rows.xx[product_of(i, j)],
                       berth::testing::rounding(operations, magnitude)));
    }
  }
  const auto a = judge(given.key, merged, given.settings);
  const auto b = judge(given.key, whole, given.settings);
  const auto fit =
      testing::naive_fit(given.ticks, testing::naive_weights(given.ticks, given.settings.half_life_s),
                         given.key.response, given.settings.default_model);
  if (!fit.has_model()) RC_DISCARD("rounding decides whether there is a model");
  RC_ASSERT(a.fit.has_value() == b.fit.has_value());
  if (!a.fit) return;
  // Each of both is so far from the fit of all observations at most.
  RC_ASSERT(within(a.fit->k1.value, b.fit->k1.value, 2 * fit.coefficient_bound(0)));
  RC_ASSERT(within(a.fit->k2.value, b.fit->k2.value, 2 * fit.coefficient_bound(1)));
}

}  // namespace

}  // namespace berth::policies
