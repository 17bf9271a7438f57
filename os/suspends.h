// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/clock.h"

#include <functional>
#include <utility>

namespace berth::os {

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
