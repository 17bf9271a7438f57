// SPDX-License-Identifier: Apache-2.0
// Traces of memory in CSV, the rivals of the forecast, and the judge.
#include "policies/eviction/forecast/backtest.h"

#include "policies/eviction/forecast/rivals.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::policies {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Demand = std::vector<model::MemoryReading>;

std::string fault(const std::string& text) {
  const auto readings = parse_memory_trace(text);
  return readings ? "" : readings.error().message();
}

// A reading a second.
Demand demand_of(const std::vector<std::uint64_t>& bytes) {
  Demand demand;
  for (const std::uint64_t each : bytes) demand.push_back({static_cast<double>(demand.size()), each});
  return demand;
}

// 100 for `before` seconds, then `later` up to 100 s.
Demand step_at(std::size_t before, std::uint64_t later) {
  std::vector<std::uint64_t> bytes(100, later);
  std::fill_n(bytes.begin(), before, 100);
  return demand_of(bytes);
}

std::vector<std::optional<double>> always(const Demand& demand, double bytes) {
  return std::vector<std::optional<double>>(demand.size(), bytes);
}

constexpr ForecastTask kTask{.capacity_bytes = 1000, .line_bytes = 900, .horizon_s = 10};

}  // namespace

TEST(MemoryTrace, HasReadingsInLines) {
  const auto readings = parse_memory_trace("time,bytes\r\n0,10\n\n# a pause\n1.5, 20\r\n1e3,0");
  ASSERT_TRUE(readings) << readings.error().message();
  EXPECT_THAT(*readings, ElementsAre(model::MemoryReading{0, 10}, model::MemoryReading{1.5, 20},
                                     model::MemoryReading{1000, 0}));
  EXPECT_TRUE(parse_memory_trace("")->empty());
}

TEST(MemoryTrace, RefusesWhatIsNoReadingAndSaysWhere) {
  EXPECT_THAT(fault("0,1\n1;2\n"), HasSubstr("line 2: no comma"));
  EXPECT_THAT(fault("0,1\ntime,bytes\n"), HasSubstr("line 2: \"time\" is no time"));
  EXPECT_THAT(fault("nan,1"), HasSubstr("line 1: \"nan\" is no time"));
  EXPECT_THAT(fault("-1,1"), HasSubstr("no time"));
  EXPECT_THAT(fault("1e300,1"), HasSubstr("no time"));
  EXPECT_THAT(fault("0,-1"), HasSubstr("\"-1\" is no number of bytes"));
  EXPECT_THAT(fault("0,1.5"), HasSubstr("no number of bytes"));
  EXPECT_THAT(fault("0,9007199254740993"), HasSubstr("no number of bytes"));
  EXPECT_THAT(fault("0,1,2"), HasSubstr("no number of bytes"));
  EXPECT_THAT(fault("0,"), HasSubstr("no number of bytes"));
  EXPECT_THAT(fault("5,1\n5,1"), HasSubstr("line 2: time 5 is not later"));
  EXPECT_THAT(fault("5,1\n4,1"), HasSubstr("than that of the reading before, 5"));
}

TEST(MemoryTrace, HasLimits) {
  EXPECT_THAT(fault("0,1\n" + std::string(kMostTraceLine + 1, '1')),
              HasSubstr("line 2: longer than 100 bytes"));
  std::string text;
  for (std::size_t i = 0; i <= kMostTraceReadings; ++i) text += std::to_string(i) + ",1\n";
  EXPECT_THAT(fault(text), HasSubstr("there are more than 200000 readings"));
}

TEST(Rivals, ExpectWhatTheirNamesSay) {
  const Demand ramp = demand_of({100, 110, 120, 130, 140});
  EXPECT_EQ(expect_last_value(ramp), 140);
  EXPECT_NEAR(expect_straight_line(ramp, 60, 30).value_or(0), 440, 1e-6);
  EXPECT_NEAR(expect_straight_line(ramp, 2, 10).value_or(0), 240, 1e-6);
  // M = 120, sd = 14.14
  EXPECT_NEAR(expect_published(ramp, 60, 2).value_or(0), 149, 0.01);
  EXPECT_EQ(expect_published(demand_of({140, 130}), 60, 2), 130);
  EXPECT_EQ(expect_straight_line(demand_of({140, 130}), 60, 30), 130) << "no less than the latest";
  EXPECT_FALSE(expect_last_value({}).has_value());
}

TEST(ForecastJudge, FindsWhatWasMissed) {
  std::vector<std::uint64_t> bytes;
  for (std::uint64_t t = 0; t < 100; ++t) bytes.push_back(10 * t + 100);
  const Demand ramp = demand_of(bytes);  // crosses at 81 s
  auto expected = always(ramp, 0);
  auto verdict = judge_forecast(ramp, expected, kTask);
  EXPECT_EQ(verdict.crossings, 1U);
  EXPECT_EQ(verdict.missed.events, 1U);
  EXPECT_EQ(verdict.missed.bytes, 110) << "a horizon later it needs 1010";
  expected[71] = 901;
  verdict = judge_forecast(ramp, expected, kTask);
  EXPECT_EQ(verdict.missed.events, 0U);
  expected[71].reset();
  expected[72] = 901;
  EXPECT_EQ(judge_forecast(ramp, expected, kTask).missed.events, 1U) << "too late";
}

TEST(ForecastJudge, ListsStepsApart) {
  const Demand step = step_at(50, 950);
  const auto verdict = judge_forecast(step, always(step, 0), kTask);
  EXPECT_EQ(verdict.missed.events, 0U);
  EXPECT_EQ(verdict.sudden.events, 1U);
  EXPECT_EQ(verdict.sudden.bytes, 50);
  // Within the first horizon, no method could have warned.
  EXPECT_EQ(judge_forecast(step_at(9, 950), always(step, 0), kTask).crossings, 0U);
}

TEST(ForecastJudge, CountsADitherAtTheLineOnce) {
  std::vector<std::uint64_t> bytes(100, 899);
  for (std::size_t i = 40; i < 60; i += 2) bytes[i] = 901;
  const Demand dither = demand_of(bytes);
  EXPECT_EQ(judge_forecast(dither, always(dither, 0), kTask).missed.events, 1U);
}

TEST(ForecastJudge, FindsNeedlessWarnings) {
  const Demand level = step_at(100, 0);  // 100 bytes all the time
  auto expected = always(level, 0);
  expected[10] = 950;
  expected[12] = 990;
  expected[40] = 901;
  expected[95] = 990;
  const auto verdict = judge_forecast(level, expected, kTask);
  EXPECT_EQ(verdict.needless.events, 2U)
      << "12 s is the same event as 10 s, and after 95 s too little is known";
  EXPECT_EQ(verdict.needless.bytes, 91);
  // Demand that comes within 5 % of the capacity justifies it.
  const Demand close = step_at(30, 851);
  EXPECT_EQ(judge_forecast(close, expected, kTask).needless.events, 0U) << "within two horizons";
}

TEST(Backtest, EveryMethodKnowsNoFuture) {
  const Demand demand = step_at(70, 900);
  for (const ForecastMethod method : kForecastMethods) {
    const auto all = expectations_of(method, demand, {});
    const auto some = expectations_of(method, std::span(demand).first(70), {});
    ASSERT_EQ(all.size(), 100U);
    for (std::size_t i = 0; i < 70; ++i) EXPECT_EQ(all[i], some[i]) << to_string(method) << " at " << i;
  }
}

}  // namespace berth::policies
