// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/forecast/judge.h"

#include <algorithm>
#include <utility>

namespace berth::policies {

namespace {

constexpr double kNear = 0.05;      // of the capacity
constexpr double kStepTime_s = 5;   // a rise within this time is a step, or within a quarter of the horizon
constexpr double kStepShare = 0.5;  // of the climb within a horizon

class Judge {
 public:
  Judge(std::span<const model::MemoryReading> demand, std::span<const std::optional<double>> expected,
        const ForecastTask& task)
      : demand_(demand), expected_(expected), task_(task) {}

  ForecastVerdict judge() {
    find_crossings();
    find_needless();
    return verdict_;
  }

 private:
  double bytes(std::size_t i) const { return static_cast<double>(demand_[i].bytes); }
  double time(std::size_t i) const { return demand_[i].time; }
  double need(std::size_t i) const { return std::max(0.0, expected_[i].value_or(0) - task_.line_bytes); }

  void find_crossings() {
    std::optional<double> last_above;
    for (std::size_t i = 0; i < demand_.size(); ++i) {
      if (bytes(i) <= task_.line_bytes) continue;
      const bool new_one = !last_above || time(i) - *last_above > task_.horizon_s;
      last_above = time(i);
      if (new_one && time(i) - time(0) >= task_.horizon_s) judge_crossing(i);
    }
  }

  void judge_crossing(std::size_t crossing) {
    ++verdict_.crossings;
    // The last reading at t - horizon or before.
    std::size_t before = crossing;
    while (before > 0 && time(before) > time(crossing) - task_.horizon_s) --before;
    if (need(before) > 0) return;
    double most = 0;
    for (std::size_t i = crossing; i < demand_.size() && time(i) <= time(crossing) + task_.horizon_s; ++i)
      most = std::max(most, bytes(i) - task_.line_bytes);
    ForecastFaults& faults = is_sudden(before, crossing) ? verdict_.sudden : verdict_.missed;
    ++faults.events;
    faults.bytes += most;
  }

  bool is_sudden(std::size_t before, std::size_t crossing) const {
    double lowest = bytes(crossing);
    double step = 0;
    const double time_s = std::min(kStepTime_s, task_.horizon_s / 4);
    for (std::size_t i = before; i < crossing; ++i) {
      lowest = std::min(lowest, bytes(i));
      for (std::size_t j = i + 1; j <= crossing && (j == i + 1 || time(j) - time(i) <= time_s); ++j)
        step = std::max(step, bytes(j) - bytes(i));
    }
    const double climb = bytes(crossing) - lowest;
    return step >= kNear * task_.capacity_bytes && step >= kStepShare * climb &&
           bytes(crossing) - step <= task_.line_bytes;
  }

  void find_needless() {
    const double near = task_.line_bytes - kNear * task_.capacity_bytes;
    std::optional<double> last;
    double most = 0;  // of the present event
    std::size_t next_near = 0;
    for (std::size_t i = 0; i < demand_.size(); ++i) {
      if (time(i) + 2 * task_.horizon_s > time(demand_.size() - 1)) break;
      next_near = std::max(next_near, i);
      while (next_near < demand_.size() && bytes(next_near) < near) ++next_near;
      if (need(i) <= 0) continue;
      if (next_near < demand_.size() && time(next_near) <= time(i) + 2 * task_.horizon_s) continue;
      if (!last || time(i) - *last > task_.horizon_s) {
        ++verdict_.needless.events;
        verdict_.needless.bytes += std::exchange(most, 0);
      }
      last = time(i);
      most = std::max(most, need(i));
    }
    verdict_.needless.bytes += most;
  }

  std::span<const model::MemoryReading> demand_;
  std::span<const std::optional<double>> expected_;
  const ForecastTask& task_;
  ForecastVerdict verdict_;
};

}  // namespace

ForecastVerdict judge_forecast(std::span<const model::MemoryReading> demand,
                               std::span<const std::optional<double>> expected, const ForecastTask& task) {
  return Judge(demand, expected, task).judge();
}

}  // namespace berth::policies
