// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/sampling_budget.h"

#include <algorithm>

namespace berth::daemon {

namespace {

// Weight of the newest tick, and the most that one may count, in averages: a burst of new cgroups must not
// stretch the interval for minutes.
constexpr double kNewest = 0.2;
constexpr double kMostAverages = 4;
// However costly the kernel's part is, this share of the budget is left for readings.
constexpr double kLeastForReading = 0.5;
// And this share of that may go to what users made.
constexpr double kOfUsers = 0.5;

}  // namespace

void SamplingBudget::add(double read_cpu_s, double kernel_cpu_s, double now_s) {
  const double elapsed_s = now_s - told_at_s_;
  const double kernel_s = kernel_cpu_s - kernel_cpu_s_;
  kernel_cpu_s_ = kernel_cpu_s;
  told_at_s_ = now_s;
  if (told_ == 0) {
    told_ = 1;
    return;
  }
  if (told_ == 1) {
    told_ = 2;
    read_cpu_s_ = read_cpu_s;
    if (elapsed_s > 0) {
      read_cores_ = read_cpu_s / elapsed_s;
      kernel_cores_ = std::max(kernel_s, 0.0) / elapsed_s;
    }
    return;
  }
  const double counted_s = std::min(read_cpu_s, kMostAverages * read_cpu_s_);
  read_cpu_s_ += kNewest * (counted_s - read_cpu_s_);
  if (elapsed_s <= 0) return;
  read_cores_ += kNewest * (read_cpu_s / elapsed_s - read_cores_);
  // The kernel's count may have started anew.
  if (kernel_s >= 0) kernel_cores_ += kNewest * (kernel_s / elapsed_s - kernel_cores_);
}

double SamplingBudget::for_reading(double max_cpu) const {
  return std::max(max_cpu - kernel_cores_, kLeastForReading * max_cpu);
}

double SamplingBudget::interval_s(double configured_s, double max_cpu) const {
  const double longest_s = std::max(configured_s, kLongest_s);
  // Without a budget for readings, no interval is long enough.
  if (for_reading(max_cpu) <= 0) return longest_s;
  return std::clamp(read_cpu_s_ / for_reading(max_cpu), configured_s, longest_s);
}

double SamplingBudget::share_of_users_s(double configured_s, double max_cpu) const {
  if (told_ == 0) return kLongest_s;
  return kOfUsers * for_reading(max_cpu) * configured_s;
}

}  // namespace berth::daemon
