// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <utility>

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

// Time since the boot, with the time for which the host slept.
inline double boot_s() { return seconds_of(CLOCK_BOOTTIME); }

// The clock of berthd (docs/architecture.md, clocks). now() reads like seconds since the epoch, and it never
// steps: it is CLOCK_BOOTTIME and a constant, which is taken from the wall clock when this object is made.
// Times from elsewhere, and times that people read, are of the wall clock; wall_ahead_s() leads from one to
// the other. Copies have the same constant. Any thread may call.
class Clock {
 public:
  struct Sources {
    std::function<double()> boot = boot_s;   // never steps
    std::function<double()> wall = epoch_s;  // steps when it is set
    std::function<double()> monotonic = monotonic_s;
  };

  Clock() : Clock(Sources()) {}
  explicit Clock(Sources sources)
      : sources_(std::move(sources)), epoch_s_(sources_.wall() - sources_.boot()) {}

  double now() const { return of_boot(sources_.boot()); }
  // It stands while the host sleeps. So processes that get some seconds get them awake.
  double monotonic() const { return sources_.monotonic(); }
  // From times since the boot, and back. Files of this boot keep those: each berthd has another constant.
  double of_boot(double since_boot_s) const { return since_boot_s + epoch_s_; }
  double since_boot(double time_s) const { return time_s - epoch_s_; }
  // The wall clock shows this many seconds more than now(). It is 0 until the wall clock was set. It is a
  // multiple of 1/1024 s, so that adding it to times keeps the differences between them exactly.
  double wall_ahead_s() const {
    const double ahead = sources_.wall() - now();
    return std::abs(ahead) < kReading_s ? 0 : std::round(ahead * kGrains) / kGrains;
  }

 private:
  // The clocks are read one after the other, and the thread may wait in between. NTP's slow corrections
  // change both clocks alike.
  static constexpr double kReading_s = 0.1;
  static constexpr double kGrains = 1024;

  Sources sources_;
  double epoch_s_;
};

// Tells how long the host slept (suspend).
class Suspends {
 public:
  explicit Suspends(std::function<double()> boot = boot_s, std::function<double()> awake = monotonic_s)
      : boot_(std::move(boot)), awake_(std::move(awake)), before_(boot_() - awake_()) {}

  // Seconds since the last call that told some; 0 for less than a second, which may be the time between two
  // readings.
  double take() {
    constexpr double kLeast_s = 1;
    const double slept = boot_() - awake_() - before_;
    if (slept < kLeast_s) return 0;
    before_ += slept;
    return slept;
  }

 private:
  std::function<double()> boot_;
  std::function<double()> awake_;
  double before_;
};

}  // namespace berth::os
