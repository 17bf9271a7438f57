// SPDX-License-Identifier: Apache-2.0
// The forecast of memory demand, by shapes that it must tell apart.
#include "policies/eviction/forecast/forecast.h"

#include "policies/eviction/forecast/rivals.h"
#include "policies/eviction/forecast/series.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/eviction/eviction_nodes.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing::spark;

constexpr double kHorizon_s = 30;
constexpr double kSd = 0.02;  // GiB of noise

// A reading a second, with noise; `shape` is in GiB.
std::vector<model::MemoryReading> series(int seconds, const std::function<double(int)>& shape,
                                         std::uint64_t seed = 1) {
  testing::Draws draws(seed);
  std::vector<model::MemoryReading> readings;
  for (int t = 0; t < seconds; ++t) {
    double noise = -6;
    for (int i = 0; i < 12; ++i) noise += draws.fraction();
    const double gib = shape(t) + kSd * noise;
    readings.push_back({1000.0 + t, static_cast<std::uint64_t>(gib * static_cast<double>(kGiB))});
  }
  return readings;
}

// GiB that are expected within the horizon, at the end of the series.
double expected(const std::vector<model::MemoryReading>& readings, double horizon_s = kHorizon_s) {
  const auto forecast = forecast_memory(readings, horizon_s, 0.9);
  EXPECT_TRUE(forecast.has_value());
  return (forecast->peak_bytes + forecast->margin_bytes) / static_cast<double>(kGiB);
}

double saw_tooth(int t) { return 4 + (t % 60) / 60.0 * 2; }

}  // namespace

TEST(Forecast, KnowsNothingWithoutReadings) {
  EXPECT_FALSE(forecast_memory({}, kHorizon_s, 0.9).has_value());
}

TEST(Forecast, OfFewReadingsIsTheLevel) {
  const auto forecast = forecast_memory(series(3, [](int) { return 4.0; }), kHorizon_s, 0.9);
  EXPECT_EQ(forecast->shape, ForecastShape::few);
  EXPECT_EQ(forecast->errors, 0U);
  EXPECT_NEAR(forecast->peak_bytes / static_cast<double>(kGiB), 4, 0.1);
}

TEST(Forecast, OfALevelIsTheLevelAndItsNoise) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const double gib = expected(series(
        300, [](int) { return 4.0; }, seed));
    EXPECT_GT(gib, 4);
    EXPECT_LT(gib, 4 + 8 * kSd) << "seed " << seed;
  }
}

TEST(Forecast, ExtendsNoStepThatIsOver) {
  for (int after = 1; after <= 120; ++after) {
    const auto readings = series(200 + after, [](int t) { return t < 200 ? 2.0 : 6.0; });
    EXPECT_LT(expected(readings), 6 + 10 * kSd) << after << " s after the step";
  }
}

TEST(Forecast, ExtendsARampSoon) {
  const auto ramp = [](int t) { return 2 + 0.2 * std::max(0, t - 200); };
  for (int after = 20; after <= 120; ++after)
    EXPECT_GT(expected(series(200 + after, ramp)), ramp(200 + after + 25)) << after << " s after it began";
}

// sampling.interval may be longer than an eviction takes.
TEST(Forecast, ExtendsARampOfReadingsFartherApartThanTheHorizon) {
  auto readings = series(120, [](int t) { return 4 + 0.1 * t; });
  for (std::size_t i = 0; i < readings.size(); ++i) readings[i].time = 1000 + 60 * static_cast<double>(i);
  const auto forecast = forecast_memory(readings, kHorizon_s, 0.9);
  ASSERT_TRUE(forecast.has_value());
  EXPECT_EQ(forecast->errors, 0U);
  EXPECT_GT(expected(readings), 4 + 0.1 * 119);
}

TEST(Forecast, ForgetsARampThatIsOver) {
  const auto ramp = [](int t) { return 2 + 0.2 * std::min(100, std::max(0, t - 100)); };
  EXPECT_LT(expected(series(260, ramp)), 22 + 10 * kSd);
}

TEST(Forecast, SeesARampAccelerate) {
  const auto curve = [](int t) { return 2 + 0.0005 * std::pow(std::max(0, t - 100), 2); };
  for (int t = 160; t <= 240; t += 5)
    EXPECT_GT(expected(series(t, curve)), 0.95 * curve(t + 30)) << "at " << t << " s";
}

TEST(Forecast, EndsASawToothAtItsPeak) {
  for (int t = 190; t < 420; ++t)
    EXPECT_LT(expected(series(t, saw_tooth)), 6 + 10 * kSd) << "at " << t << " s";
}

TEST(Forecast, KnowsHowFarASawToothClimbs) {
  int foreseen = 0;
  for (int t = 200; t < 440; ++t) {
    double most = 0;
    for (int ahead = 0; ahead < 30; ++ahead) most = std::max(most, saw_tooth(t + ahead));
    foreseen += expected(series(t, saw_tooth)) > most - 4 * kSd ? 1 : 0;
  }
  EXPECT_GT(foreseen, 216) << "nine of ten";
}

TEST(Forecast, TakesNoBurstForATrend) {
  const auto burst = [](int t) { return t % 90 >= 70 && t % 90 < 80 ? 5.0 : 3.0; };
  for (int t = 200; t < 400; ++t) EXPECT_LT(expected(series(t, burst)), 5 + 10 * kSd) << "at " << t << " s";
}

TEST(Forecast, ALargerConfidenceExpectsNoLess) {
  const auto readings = series(300, saw_tooth);
  EXPECT_LE(expected(readings), [&] {
    const auto sure = forecast_memory(readings, kHorizon_s, 1);
    return (sure->peak_bytes + sure->margin_bytes) / static_cast<double>(kGiB);
  }());
}

TEST(Forecast, TakesTheHorizonFromEvictions) {
  EXPECT_EQ(horizon_of({}, 45), 45);
  EXPECT_EQ(horizon_of(std::vector<double>{3}, 45), 10);
  EXPECT_EQ(horizon_of(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 80, 90, 20}, 45), 80);
  EXPECT_EQ(horizon_of(std::vector<double>{5000}, 45), 300);
}

TEST(ForecastSeries, FindsStepsPeaksAndTrends) {
  const auto readings = series(300, [](int t) { return t < 150 ? 4.0 : 6.0; });
  const DemandSeries step(readings);
  EXPECT_TRUE(step.is_step(150));
  EXPECT_NEAR(step.trend(170, 60).slope / static_cast<double>(kGiB), 0, 0.002);
  EXPECT_NEAR(step.noise(100) / static_cast<double>(kGiB), kSd, kSd / 2);
  EXPECT_EQ(step.peaks(299), 0U);
  const auto teeth = series(300, saw_tooth);
  const DemandSeries saw(teeth);
  EXPECT_EQ(saw.peaks(59), 0U);
  EXPECT_EQ(saw.peaks(299), 4U);
  EXPECT_NEAR(saw.ceiling(299) / static_cast<double>(kGiB), 6, 0.1);
  EXPECT_NEAR(saw.trend(299, 60).slope / static_cast<double>(kGiB), 2.0 / 60, 0.005);
}

TEST(ForecastSeries, QuantilesAreConformal) {
  std::vector<double> values{5, 1, 4, 2, 3, 9, 6, 8, 7};
  EXPECT_EQ(quantile(values, 0.9), 9);
  EXPECT_EQ(quantile(values, 0.5), 5);
  EXPECT_EQ(quantile(values, 0), 1);
  std::vector<double> none;
  EXPECT_EQ(quantile(none, 0.5), 0);
}

// A node with a service whose use is `readings`, and batch work that could be evicted.
model::Snapshot node_with(const std::vector<model::MemoryReading>& readings, std::uint64_t total) {
  model::Snapshot node = snapshot(0, {other("batch", 630, 4 * kGiB)});
  node.time = readings.back().time;
  model::Workload web = testing::latency_sensitive("web", 1);
  web.usage.clear();
  for (std::size_t i = readings.size() - std::min<std::size_t>(60, readings.size()); i < readings.size(); ++i)
    web.usage.push_back(sample(readings[i].time, readings[i].bytes));
  node.workloads.push_back(web);
  node.memory.total_bytes = total;
  node.memory.available_bytes = total - 4 * kGiB - readings.back().bytes;
  node.memory_readings = readings;
  return node;
}

TEST(ForecastInThePolicy, NobodyIsEvictedForAStepThatIsOver) {
  // 2 GiB, then 6 GiB; 14 GiB would hold 3.3 GiB more.
  EvictionSettings published;
  published.forecast = ForecastRule::published;
  bool wrongly = false;
  for (int after = 0; after <= 120; ++after) {
    const auto readings = series(201 + after, [](int t) { return t < 200 ? 2.0 : 6.0; });
    const model::Snapshot node = node_with(readings, 11 * kGiB);
    const model::EvictionFindings findings = find(node);
    EXPECT_THAT(findings.victims, IsEmpty()) << after << " s after the step: " << findings.reason;
    EXPECT_EQ(findings.trigger, model::EvictionTrigger::none);
    wrongly = wrongly || !find(node, published).victims.empty();
  }
  EXPECT_TRUE(wrongly) << "the published rule would evict";
}

TEST(ForecastInThePolicy, MemoryIsFreedBeforeAClimbNeedsIt) {
  const auto ramp = [](int t) { return 2 + 0.1 * std::max(0, t - 100); };
  // The service reaches 6.45 GiB, where the reserve begins, at 144 s.
  int evicts_at = 0;
  for (int t = 60; t <= 144 && evicts_at == 0; ++t) {
    const model::Snapshot node = node_with(series(t, ramp), 11 * kGiB);
    if (!find(node).victims.empty()) evicts_at = t;
  }
  EXPECT_GT(evicts_at, 100);
  EXPECT_LE(evicts_at, 144 - 20) << "20 s before, though the ramp has lasted 24 s only";
}

TEST(ForecastInThePolicy, SaysWhatItExpectsAndFromWhat) {
  model::Snapshot node = node_with(series(200, [](int) { return 4.0; }), 16 * kGiB);
  node.eviction_durations_s = {12, 14};
  const model::EvictionFindings findings = find(node);
  ASSERT_TRUE(findings.forecast.has_value());
  EXPECT_EQ(findings.forecast->shape, "trend");
  EXPECT_EQ(findings.forecast->horizon_s, 14);
  EXPECT_EQ(findings.forecast->readings, 200U);
  EXPECT_GT(findings.forecast->errors, 10U);
  EXPECT_THAT(findings.reason, HasSubstr("more (within 14 s)"));
  const double growth = findings.forecast->peak_bytes + findings.forecast->margin_bytes -
                        static_cast<double>(node.memory_readings.back().bytes);
  EXPECT_EQ(findings.growth_bytes, static_cast<std::uint64_t>(std::max(0.0, std::ceil(growth))));
  EvictionSettings published;
  published.forecast = ForecastRule::published;
  EXPECT_FALSE(find(node, published).forecast.has_value());
}

TEST(ForecastInThePolicy, TakesTheSamplesWhereASnapshotHasNoReadings) {
  model::Snapshot node = node_with(series(200, [](int) { return 4.0; }), 16 * kGiB);
  node.memory_readings.clear();
  EXPECT_EQ(find(node).forecast->readings, 60U);
  node.workloads.pop_back();
  EXPECT_FALSE(find(node).forecast.has_value());
  EXPECT_EQ(find(node).growth_bytes, 0U);
}

}  // namespace berth::policies
