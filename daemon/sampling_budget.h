// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::daemon {

// Keeps what sampling costs below a share of one core, by ticking less often (docs/algorithms.md, The cost of
// sampling).
class SamplingBudget {
 public:
  // Ticks are never further apart than this, or than they are configured to be.
  static constexpr double kLongest_s = 60;

  // What the reading of one tick took, in seconds of CPU time, and the CPU time that the kernel's part has
  // taken since the start of it all; `now_s` is monotonic. The first reading, which opens every file, does
  // not count.
  void add(double read_cpu_s, double kernel_cpu_s, double now_s);

  // Distance of ticks that keeps to `max_cpu` (cores), `configured_s` at least.
  double interval_s(double configured_s, double max_cpu) const;
  // Cores used by sampling of late, as measured.
  double cores() const { return kernel_cores_ + read_cores_; }
  // Of these the kernel's part, which ticking less often does not lower.
  double kernel_cores() const { return kernel_cores_; }
  // Seconds of CPU time a reading takes, of late.
  double read_cpu_s() const { return read_cpu_s_; }

 private:
  int told_ = 0;  // up to 2
  double read_cpu_s_ = 0;
  double read_cores_ = 0;
  double kernel_cores_ = 0;
  double kernel_cpu_s_ = 0;  // as last told
  double told_at_s_ = 0;
};

}  // namespace berth::daemon
