// SPDX-License-Identifier: Apache-2.0
// A series of memory readings, cut into what a forecast needs: steps, trend, noise and peaks.
#pragma once

#include "model/memory_series.h"

#include <cstddef>
#include <span>
#include <vector>

namespace berth::policies {

// A value of a sorted share of the values: of n values the ceil((n + 1) * share)-th, as conformal prediction
// has it. 0 where there are none. Reorders the values.
double quantile(std::vector<double>& values, double share);

// Bytes and seconds. Index 0 is the oldest reading.
class DemandSeries {
 public:
  explicit DemandSeries(std::span<const model::MemoryReading> readings);

  std::size_t size() const { return times_.size(); }
  double time(std::size_t i) const { return times_[i]; }
  double bytes(std::size_t i) const { return bytes_[i]; }
  // Whether the reading came by a step: its rise differs from those of the last 20 and the next 10 readings
  // by more than four of their deviations. A ramp is no step, once it fills more than half of these.
  bool is_step(std::size_t i) const { return steps_[i]; }
  // The typical deviation of a reading around the trend.
  double noise(std::size_t i) const { return noise_[i]; }
  // How many peaks the demand has fallen from by then; a fall is a quarter of the whole range or more.
  std::size_t peaks(std::size_t i) const { return peaks_[i]; }
  // The higher one of the last two of these peaks; 0 before any.
  double ceiling(std::size_t i) const { return ceilings_[i]; }
  // Between the least and the most.
  double range() const { return range_; }

  struct Trend {
    double slope = 0;      // bytes a second, of the least-squares line without steps; 0 where there is none
    double deviation = 0;  // of that slope, from the noise
  };
  // Of the last `window_s` before the reading; readings far apart get a longer window.
  Trend trend(std::size_t i, double window_s) const;
  // The first reading less than `window_s` before that one; the window as trend() has it.
  std::size_t begin_of_window(std::size_t i, double window_s) const;
  // Whether there is a reading within `horizon_s` after that one.
  bool has_after(std::size_t i, double horizon_s) const {
    return i + 1 < size() && times_[i + 1] <= times_[i] + horizon_s;
  }
  // The most that demand was within `horizon_s` after the reading, without what steps upwards added to it,
  // because no method can foresee these. At the last reading: its bytes.
  double most_after(std::size_t i, double horizon_s) const;

 private:
  void find_steps();
  void find_peaks();

  std::vector<double> times_;
  std::vector<double> bytes_;
  std::vector<double> gentle_;  // the bytes without steps
  std::vector<char> steps_;
  std::vector<double> noise_;
  std::vector<std::size_t> peaks_;
  std::vector<double> ceilings_;
  double range_ = 0;
  double gap_s_ = 1;  // mean time between readings
};

}  // namespace berth::policies
