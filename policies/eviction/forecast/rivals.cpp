// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/forecast/rivals.h"

#include "policies/eviction/demand.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace berth::policies {

namespace {

std::span<const model::MemoryReading> last_of(std::span<const model::MemoryReading> readings, int window) {
  return readings.last(std::min(readings.size(), static_cast<std::size_t>(std::max(1, window))));
}

model::MemoryDemand figures_of_last(std::span<const model::MemoryReading> readings) {
  std::vector<double> times;
  std::vector<double> sums;
  times.reserve(readings.size());
  sums.reserve(readings.size());
  for (const model::MemoryReading& reading : readings) {
    times.push_back(reading.time);
    sums.push_back(static_cast<double>(reading.bytes));
  }
  return figures_of(times, sums);
}

}  // namespace

std::optional<double> expect_published(std::span<const model::MemoryReading> readings, int window, double z) {
  if (readings.empty()) return std::nullopt;
  const model::MemoryDemand demand = figures_of_last(last_of(readings, window));
  return static_cast<double>(demand.latest_bytes) + static_cast<double>(growth_of(demand, z));
}

std::optional<double> expect_last_value(std::span<const model::MemoryReading> readings) {
  if (readings.empty()) return std::nullopt;
  return static_cast<double>(readings.back().bytes);
}

std::optional<double> expect_straight_line(std::span<const model::MemoryReading> readings, int window,
                                           double horizon_s) {
  if (readings.empty()) return std::nullopt;
  const auto last = last_of(readings, window);
  const model::MemoryDemand demand = figures_of_last(last);
  const double middle = [&] {
    double sum = 0;
    for (const model::MemoryReading& reading : last) sum += reading.time - last.back().time;
    return sum / static_cast<double>(last.size());
  }();
  const double end = demand.mean_bytes + demand.slope_bytes_per_s * (horizon_s - middle);
  return std::max(end, static_cast<double>(demand.latest_bytes));
}

}  // namespace berth::policies
