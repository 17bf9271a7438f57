// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/forecast/backtest.h"

#include "model/bounds.h"
#include "model/json.h"
#include "model/json_reader.h"
#include "model/number.h"
#include "model/text.h"
#include "policies/eviction/forecast/forecast.h"
#include "policies/eviction/forecast/rivals.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <fmt/core.h>

namespace berth::policies {

namespace {

std::optional<double> expect_learned(std::span<const model::MemoryReading> readings,
                                     const BacktestSettings& settings) {
  const auto forecast = forecast_memory(readings, settings.horizon_s, settings.confidence);
  if (!forecast) return std::nullopt;
  return std::max(forecast->peak_bytes + forecast->margin_bytes, static_cast<double>(readings.back().bytes));
}

std::optional<double> expect(ForecastMethod method, std::span<const model::MemoryReading> readings,
                             const BacktestSettings& settings) {
  switch (method) {
    case ForecastMethod::learned:
      return expect_learned(readings, settings);
    case ForecastMethod::published:
      return expect_published(readings, settings.window, settings.z);
    case ForecastMethod::last_value:
      return expect_last_value(readings);
    case ForecastMethod::straight_line:
      return expect_straight_line(readings, settings.window, settings.horizon_s);
  }
  return std::nullopt;
}

constexpr std::string_view kBlank = " \t\r";

// The reading of a line, or the reason why it has none.
model::Result<model::MemoryReading> parse_line(std::string_view line) {
  const auto refuse = [](std::string why) {
    return model::fail(model::ErrorKind::invalid_input, std::move(why));
  };
  if (line.size() > kMostTraceLine) return refuse(fmt::format("longer than {} bytes", kMostTraceLine));
  const auto comma = line.find(',');
  if (comma == std::string_view::npos) return refuse("no comma between time and bytes");
  const std::string_view time_text = model::trimmed(line.substr(0, comma), kBlank);
  const std::string_view bytes_text = model::trimmed(line.substr(comma + 1), kBlank);
  const auto time = model::to_number<double>(time_text);
  if (!time || !(*time >= 0 && *time <= model::kLastTime_s))
    return refuse(fmt::format("{} is no time in seconds, 0 to {:.0f}", model::in_quotes(time_text),
                              model::kLastTime_s));
  const auto bytes = model::to_number<std::uint64_t>(bytes_text);
  if (!bytes || *bytes > model::kMaxBytes)
    return refuse(
        fmt::format("{} is no number of bytes, 0 to {}", model::in_quotes(bytes_text), model::kMaxBytes));
  return model::MemoryReading{*time, *bytes};
}

}  // namespace

std::vector<std::optional<double>> expectations_of(ForecastMethod method,
                                                   std::span<const model::MemoryReading> demand,
                                                   const BacktestSettings& settings) {
  std::vector<std::optional<double>> expected;
  expected.reserve(demand.size());
  for (std::size_t i = 1; i <= demand.size(); ++i) {
    const auto known = demand.first(i);
    expected.push_back(expect(method, known.last(std::min(i, model::kMostMemoryReadings)), settings));
  }
  return expected;
}

model::Result<std::vector<model::MemoryReading>> parse_memory_trace(std::string_view text) {
  const auto refuse = [](std::size_t line, const std::string& why) {
    return model::fail(model::ErrorKind::invalid_input, fmt::format("line {}: {}", line, why));
  };
  std::vector<model::MemoryReading> readings;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = model::trimmed(model::take_line(text), kBlank);
    ++number;
    if (line.empty() || line.front() == '#' || (number == 1 && line == "time,bytes")) continue;
    const auto reading = parse_line(line);
    if (!reading) return refuse(number, reading.error().message());
    if (!readings.empty() && reading->time <= readings.back().time)
      return refuse(number, fmt::format("time {} is not later than that of the reading before, {}",
                                        reading->time, readings.back().time));
    if (readings.size() == kMostTraceReadings)
      return refuse(number, fmt::format("there are more than {} readings; cut the trace, or thin it out",
                                        kMostTraceReadings));
    readings.push_back(*reading);
  }
  return readings;
}

}  // namespace berth::policies
