// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampling_budget.h"

#include <algorithm>

namespace berth::daemon {

namespace {

// Weight of the newest tick: a burst of new cgroups must not stretch the interval for minutes.
constexpr double kNewest = 0.2;
// However dear the kernel's part is, this share of the budget stays for readings.
constexpr double kLeastForReading = 0.1;

}  // namespace

void SamplingBudget::add(double read_cpu_s, double kernel_cpu_s, double now_s) {
  const double elapsed_s = now_s - told_at_s_;
  if (!any_) {
    read_cpu_s_ = read_cpu_s;
  } else {
    read_cpu_s_ += kNewest * (read_cpu_s - read_cpu_s_);
    // Counting may have started anew.
    if (elapsed_s > 0 && kernel_cpu_s >= kernel_cpu_s_)
      kernel_cores_ += kNewest * ((kernel_cpu_s - kernel_cpu_s_) / elapsed_s - kernel_cores_);
  }
  any_ = true;
  kernel_cpu_s_ = kernel_cpu_s;
  told_at_s_ = now_s;
}

double SamplingBudget::interval_s(double configured_s, double max_cpu) const {
  const double for_reading = std::max(max_cpu - kernel_cores_, kLeastForReading * max_cpu);
  const double longest_s = std::max(configured_s, kLongest_s);
  // Without a budget for it there is no reading often enough.
  if (for_reading <= 0) return longest_s;
  return std::clamp(read_cpu_s_ / for_reading, configured_s, longest_s);
}

}  // namespace berth::daemon
