// SPDX-License-Identifier: Apache-2.0
// How good a forecast of memory was, in hindsight. The judge knows the whole trace and no method.
#pragma once

#include "model/memory_series.h"

#include <cstddef>
#include <optional>
#include <span>

namespace berth::policies {

// The limits that a forecast is judged by. `line`: capacity less reserve. Bytes and seconds.
struct ForecastTask {
  double capacity_bytes = 0;
  double line_bytes = 0;
  double horizon_s = 30;
};

struct ForecastFaults {
  std::size_t events = 0;
  double bytes = 0;
  friend bool operator==(const ForecastFaults&, const ForecastFaults&) = default;
};

// *Crossing*: demand is above the line, and was not for a horizon before. The one at t is *foreseen* where
// need was above 0 at t - horizon, else *missed*. It is *sudden*, and neither, where a step within the
// horizon before it made it. A step is a rise from one reading to the next, or within 5 s or a quarter
// of the horizon. It is at least 5 % of the capacity and half of the whole climb within the horizon, and
// without it there would be no crossing. Bytes: the most above the line within a horizon.
//
// *Needless*: need is above 0, and within two horizons demand never comes within 5 % of the capacity of the
// line. One event ends once need was not needless for a horizon. Bytes: the largest need of each event.
struct ForecastVerdict {
  std::size_t crossings = 0;  // all of these: foreseen, missed and sudden
  ForecastFaults missed;
  ForecastFaults sudden;
  ForecastFaults needless;
  friend bool operator==(const ForecastVerdict&, const ForecastVerdict&) = default;
};

// `demand`: ascending in time. `expected`: at each reading, the demand that a method expected within the
// horizon, in bytes; nullopt where it could not tell, which counts as no need. Both have the same size. A
// crossing less than a horizon after the beginning is left out, and so is a need less than two horizons
// before the end that nothing has justified.
ForecastVerdict judge_forecast(std::span<const model::MemoryReading> demand,
                               std::span<const std::optional<double>> expected, const ForecastTask& task);

}  // namespace berth::policies
