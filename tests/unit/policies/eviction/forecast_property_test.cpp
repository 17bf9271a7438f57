// SPDX-License-Identifier: Apache-2.0
// The forecast and its judge against plain restatements, which share no code with policies/, and what holds
// of them whatever the demand.
#include "policies/eviction/forecast/backtest.h"
#include "policies/eviction/forecast/forecast.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/eviction/naive_forecast.h"
#include "tests/unit/policies/seeds.h"
#include "tests/unit/rounding.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using testing::Draws;

double most_of(const std::vector<model::MemoryReading>& demand) {
  std::uint64_t most = 0;
  for (const model::MemoryReading& reading : demand) most = std::max(most, reading.bytes);
  return static_cast<double>(most);
}

// Bytes are whole, so all their differences are exact. The slope of a window is a sum over its readings, and
// bytes per second are the demand at most, as six readings span more than a second. The peak carries it on
// over the horizon h, and an acceleration over the square of h.
double bound_of(const std::vector<model::MemoryReading>& demand, double h) {
  const double operations = 20 + 8 * static_cast<double>(demand.size());
  return berth::testing::rounding(operations, most_of(demand) * (1 + h + h * h));
}

// Some minutes of demand that changes its manner now and then. Bytes are small, so nothing is rounded away.
std::vector<model::MemoryReading> any_demand(Draws& draws) {
  std::vector<model::MemoryReading> demand;
  double time = 100;
  double level = 1e6 * (1 + 9 * draws.fraction());
  double slope = 0;
  double top = 0;
  double bottom = level;
  const double noise = 1e4 * draws.fraction() * draws.number(0, 5);
  const int readings = draws.number(1, 260);
  for (int i = 0; i < readings; ++i) {
    time += draws.chance(0.05) ? draws.number(4, 24) / 4.0 : 1;  // exact, so that they can be moved
    if (draws.chance(0.02)) slope = 3e4 * (draws.fraction() - 0.4);
    if (draws.chance(0.01)) level += 4e6 * (draws.fraction() - 0.4);
    if (draws.chance(0.02)) {  // a saw-tooth
      top = level + 3e6 * draws.fraction();
      bottom = level;
      slope = 5e4 * draws.fraction();
    }
    level += slope;
    if (top > 0 && level > top) level = bottom;
    const double bytes = std::clamp(level + noise * (draws.fraction() + draws.fraction() - 1), 0.0, 1e9);
    demand.push_back({time, static_cast<std::uint64_t>(bytes)});
  }
  return demand;
}

}  // namespace

RC_GTEST_PROP(ForecastProperty, IsWhatItsRestatementSays, ()) {
  Draws draws(*testing::any_seed());
  const auto demand = any_demand(draws);
  const double horizon_s = draws.number(5, 60);
  const double confidence = 0.5 + draws.fraction() / 2;
  const auto real = forecast_memory(demand, horizon_s, confidence);
  const naive::Expected expected = naive::forecast(demand, horizon_s, confidence);
  RC_ASSERT(real.has_value());
  RC_CLASSIFY(real->shape == ForecastShape::cycle, "a cycle");
  RC_CLASSIFY(real->shape == ForecastShape::trend, "a trend");
  RC_CLASSIFY(real->errors == 0, "from noise");
  RC_ASSERT(real->errors == expected.errors);
  RC_ASSERT((real->shape == ForecastShape::cycle) == expected.cycle);
  const double bound = bound_of(demand, horizon_s);
  RC_ASSERT(std::abs(real->peak_bytes - expected.peak) <= bound);
  RC_ASSERT(std::abs(real->margin_bytes - expected.margin) <= bound);
}

RC_GTEST_PROP(ForecastProperty, OnlyTimeThatPassedCounts, ()) {
  Draws draws(*testing::any_seed());
  auto demand = any_demand(draws);
  const auto before = forecast_memory(demand, 30, 0.9);
  for (model::MemoryReading& reading : demand) reading.time += 4096;
  const auto after = forecast_memory(demand, 30, 0.9);
  // Times are quarters of a second, so their differences are exact, and the same after the move.
  RC_ASSERT(before->peak_bytes == after->peak_bytes);
  RC_ASSERT(before->margin_bytes == after->margin_bytes);
}

RC_GTEST_PROP(ForecastProperty, AMoreCautiousMarginIsNotSmaller, ()) {
  Draws draws(*testing::any_seed());
  const auto demand = any_demand(draws);
  const auto some = forecast_memory(demand, 30, 0.7);
  const auto more = forecast_memory(demand, 30, 0.95);
  RC_ASSERT(some->margin_bytes <= more->margin_bytes);
  RC_ASSERT(some->peak_bytes == more->peak_bytes);
  RC_ASSERT(std::isfinite(more->peak_bytes) && std::isfinite(more->margin_bytes));
}

RC_GTEST_PROP(ForecastJudgeProperty, IsWhatItsRestatementSays, ()) {
  Draws draws(*testing::any_seed());
  const auto demand = any_demand(draws);
  std::vector<std::optional<double>> expected;
  for (const model::MemoryReading& reading : demand) {
    expected.emplace_back(static_cast<double>(reading.bytes) + 1e6 * (draws.fraction() - 0.4));
    if (draws.chance(0.05)) expected.back().reset();
  }
  const double line = 1e6 * (1 + 9 * draws.fraction());
  const ForecastTask task{
      .capacity_bytes = line / 0.95, .line_bytes = line, .horizon_s = 1.0 * draws.number(2, 40)};
  const ForecastVerdict real = judge_forecast(demand, expected, task);
  const ForecastVerdict same = naive::judge(demand, expected, task);
  RC_CLASSIFY(real.missed.events > 0, "missed");
  RC_CLASSIFY(real.sudden.events > 0, "sudden");
  RC_CLASSIFY(real.needless.events > 0, "needless");
  RC_ASSERT(real.crossings == same.crossings);
  RC_ASSERT(real.missed.events == same.missed.events);
  RC_ASSERT(real.sudden.events == same.sudden.events);
  RC_ASSERT(real.needless.events == same.needless.events);
  // For each event, a difference of bytes and the line is added.
  const auto events = static_cast<double>(demand.size());
  const double bound = berth::testing::rounding(2 * events, events * (most_of(demand) + 1e6 + line));
  RC_ASSERT(std::abs(real.missed.bytes - same.missed.bytes) <= bound);
  RC_ASSERT(std::abs(real.sudden.bytes - same.sudden.bytes) <= bound);
  RC_ASSERT(std::abs(real.needless.bytes - same.needless.bytes) <= bound);
}

// A method that knows the future misses nothing and warns of nothing else.
RC_GTEST_PROP(ForecastJudgeProperty, FindsNoFaultInForesight, ()) {
  Draws draws(*testing::any_seed());
  const auto demand = any_demand(draws);
  const double horizon_s = draws.number(2, 40);
  std::vector<std::optional<double>> expected;
  for (std::size_t i = 0; i < demand.size(); ++i) {
    double most = 0;
    // A little more than the horizon, as the reading before it may be some seconds old.
    for (std::size_t j = i; j < demand.size() && demand[j].time <= demand[i].time + horizon_s + 7; ++j)
      most = std::max(most, static_cast<double>(demand[j].bytes));
    expected.emplace_back(most);
  }
  const double line = 1e6 * (1 + 9 * draws.fraction());
  const ForecastVerdict verdict = judge_forecast(
      demand, expected, {.capacity_bytes = line / 0.95, .line_bytes = line, .horizon_s = horizon_s});
  RC_ASSERT(verdict.missed.events == 0U);
  RC_ASSERT(verdict.sudden.events == 0U);
  RC_ASSERT(verdict.needless.events == 0U || horizon_s < 7);
}

}  // namespace berth::policies
