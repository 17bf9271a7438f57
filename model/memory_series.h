// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth::model {

// The memory that all latency-sensitive workloads used together at one instant.
struct MemoryReading {
  double time = 0;  // epoch seconds
  std::uint64_t bytes = 0;

  friend bool operator==(const MemoryReading&, const MemoryReading&) = default;
};

// Readings of a series, oldest first.
inline constexpr std::size_t kMostMemoryReadings = 600;
// The last of these durations of evictions are kept.
inline constexpr std::size_t kMostEvictionDurations = 20;

// Adds the newest reading and drops the oldest ones, so that kMostMemoryReadings stay. A reading that comes
// less than 0.9 s after the last but one takes the place of the last, so fast ticks do not shorten the
// series. So does one of the same time. An earlier one begins the series anew, because the clock was set
// back.
void add_reading(std::vector<MemoryReading>& series, const MemoryReading& newest);

}  // namespace berth::model
