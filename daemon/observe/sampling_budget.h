// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace berth::daemon {

// Keeps the cost of sampling below a share of one core, by ticking less often (docs/ticks.md).
class SamplingBudget {
 public:
  // Ticks are never further apart than this, or than the configured interval.
  static constexpr double kLongest_s = 60;

  // Takes the CPU time of one tick's reading, in seconds, and the kernel part's CPU time since its start;
  // `now_s` is monotonic. The first reading, which opens every file, does not count.
  void add(double read_cpu_s, double kernel_cpu_s, double now_s);

  // Distance of ticks that keeps to `max_cpu` (cores), `configured_s` at least.
  double interval_s(double configured_s, double max_cpu) const;
  // CPU time, in seconds, that a reading may spend on the workloads that users made. It is a part of what the
  // budget leaves for readings at the configured distance, so that no user stretches it. The first reading
  // may take as long as it needs.
  double share_of_users_s(double configured_s, double max_cpu) const;
  // Cores that sampling used of late, as measured.
  double cores() const { return kernel_cores_ + read_cores_; }
  // Of these the kernel's part, which ticking less often does not lower.
  double kernel_cores() const { return kernel_cores_; }
  // Seconds of CPU time for a reading, of late.
  double read_cpu_s() const { return read_cpu_s_; }

 private:
  double for_reading(double max_cpu) const;  // cores
  int told_ = 0;                             // up to 2
  double read_cpu_s_ = 0;
  double read_cores_ = 0;
  double kernel_cores_ = 0;
  double kernel_cpu_s_ = 0;  // at the last call of add()
  double told_at_s_ = 0;
};

}  // namespace berth::daemon
