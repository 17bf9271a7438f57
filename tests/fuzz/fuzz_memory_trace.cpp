// SPDX-License-Identifier: Apache-2.0
// A trace of memory in CSV: readings ascend and are within limits, every method forecasts a finite demand, a
// judge finds no more faults than there are readings, and a refusal is one line.
#include "policies/eviction/forecast/backtest.h"
#include "tests/fuzz/property.h"

#include <algorithm>
#include <cmath>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const auto readings = policies::parse_memory_trace(fuzz::text_of(data, size));
  if (!readings) {
    fuzz::require_line(readings.error().message());
    return 0;
  }
  double before = -1;
  for (const model::MemoryReading& reading : *readings) {
    fuzz::require(reading.time > before, "readings ascend");
    fuzz::require(reading.bytes <= std::uint64_t{1} << 53, "bytes have a limit");
    before = reading.time;
  }
  constexpr std::size_t kForecast = 100;  // readings; more of them show nothing new
  const auto some = std::span(*readings).first(std::min(readings->size(), kForecast));
  for (const auto method : policies::kForecastMethods) {
    const auto expected = policies::expectations_of(method, some, {});
    fuzz::require(expected.size() == some.size(), "each reading has a forecast");
    for (const auto& bytes : expected) fuzz::require(bytes && std::isfinite(*bytes), "a forecast is finite");
    const auto verdict = policies::judge_forecast(
        some, expected, {.capacity_bytes = 1000, .line_bytes = 950, .horizon_s = 30});
    fuzz::require(verdict.missed.events + verdict.sudden.events <= verdict.crossings,
                  "faults are of crossings");
    fuzz::require(verdict.needless.events <= some.size(), "a need is of a reading");
  }
  return 0;
}
