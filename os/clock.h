// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

namespace berth::os {

// The clock's time in nanoseconds (clock_gettime(2)).
inline std::int64_t nanoseconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// The clock's time in seconds.
inline double seconds_of(clockid_t clock) { return static_cast<double>(nanoseconds_of(clock)) * 1e-9; }

// Seconds since the epoch.
inline double epoch_s() { return seconds_of(CLOCK_REALTIME); }
// Time since some start that stays the same until the next boot.
inline double monotonic_s() { return seconds_of(CLOCK_MONOTONIC); }
inline std::int64_t monotonic_ns() { return nanoseconds_of(CLOCK_MONOTONIC); }
inline std::uint64_t monotonic_usec() { return static_cast<std::uint64_t>(monotonic_ns()) / 1000; }

}  // namespace berth::os
