// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/memory_series.h"

#include <cstddef>
#include <optional>
#include <span>

namespace berth::policies {

// How a forecast was made. few: too few readings for anything but the present level. trend: the level and a
// trend that goes on. cycle: the demand does what it did when it was like this before.
enum class ForecastShape { few, trend, cycle };

struct Forecast {
  ForecastShape shape = ForecastShape::few;
  double peak_bytes = 0;         // F: the most that demand is forecast to be within the horizon
  double margin_bytes = 0;       // E: by how much earlier forecasts were too low; may be below 0
  double slope_bytes_per_s = 0;  // of the trend that F extends, 0 where it extends none
  std::size_t errors = 0;        // of earlier forecasts that E was taken from; 0: E is from the noise
};

// The forecast of docs/decisions/memory-forecast.md. `readings`: ascending in time, at most
// kMostMemoryReadings count, the last one is the present. `confidence`: the quantile of errors, 0 to 1.
// nullopt without readings. Pure; the cost depends on the number of readings alone.
std::optional<Forecast> forecast_memory(std::span<const model::MemoryReading> readings, double horizon_s,
                                        double confidence);

// The horizon, in seconds: the 90th percentile of the durations of evictions, from 10 to 300; `unknown_s`
// where there are none.
double horizon_of(std::span<const double> durations_s, double unknown_s);

inline const char* to_string(ForecastShape shape) {
  if (shape == ForecastShape::few) return "few";
  return shape == ForecastShape::trend ? "trend" : "cycle";
}

}  // namespace berth::policies
