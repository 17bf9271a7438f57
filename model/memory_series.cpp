// SPDX-License-Identifier: Apache-2.0
#include "model/memory_series.h"

namespace berth::model {

void add_reading(std::vector<MemoryReading>& series, const MemoryReading& newest) {
  constexpr double kLeastGap_s = 0.9;
  if (!series.empty() && newest.time < series.back().time) series.clear();
  const std::size_t count = series.size();
  const bool same_time = count >= 1 && newest.time == series.back().time;
  if (same_time || (count >= 2 && newest.time - series[count - 2].time < kLeastGap_s)) {
    series.back() = newest;
    return;
  }
  series.push_back(newest);
  if (series.size() > kMostMemoryReadings)
    series.erase(series.begin(), series.end() - static_cast<std::ptrdiff_t>(kMostMemoryReadings));
}

}  // namespace berth::model
