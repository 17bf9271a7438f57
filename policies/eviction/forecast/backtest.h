// SPDX-License-Identifier: Apache-2.0
// All methods of forecasting memory, applied to a trace as if its end were not known, and judged.
#pragma once

#include "model/error.h"
#include "model/memory_series.h"
#include "policies/eviction/forecast/judge.h"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace berth::policies {

enum class ForecastMethod { learned, published, last_value, straight_line };
inline constexpr std::array kForecastMethods{ForecastMethod::learned, ForecastMethod::published,
                                             ForecastMethod::last_value, ForecastMethod::straight_line};

inline const char* to_string(ForecastMethod method) {
  switch (method) {
    case ForecastMethod::learned:
      return "learned";
    case ForecastMethod::published:
      return "published";
    case ForecastMethod::last_value:
      return "last value";
    case ForecastMethod::straight_line:
      return "straight line";
  }
  return "";
}

struct BacktestSettings {
  double horizon_s = 30;
  double confidence = 0.9;  // of the learned method
  double z = 2;             // of the published one
  int window = 60;          // readings of the published one and the straight line
};

// The demand within the horizon, in bytes, that the method expects at each reading, from this one and those
// before it. `demand` ascends in time.
std::vector<std::optional<double>> expectations_of(ForecastMethod method,
                                                   std::span<const model::MemoryReading> demand,
                                                   const BacktestSettings& settings);

// Limits of a trace in CSV.
inline constexpr std::size_t kMostTraceBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostTraceReadings = 200'000;
inline constexpr std::size_t kMostTraceLine = 100;  // bytes

// Reads lines "time,bytes": seconds with or without a fraction, ascending, and a number of bytes, 0 to 2^53.
// A first line "time,bytes", empty lines and lines that begin with '#' are left out. Error invalid_input
// names the line and the reason. Nothing is copied from a line that is too long.
model::Result<std::vector<model::MemoryReading>> parse_memory_trace(std::string_view text);

}  // namespace berth::policies
