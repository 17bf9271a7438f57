// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/eviction/naive_forecast.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace berth::policies::naive {

namespace {

// The ceil((n + 1) * share)-th of n values.
double at_share(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const double rank = std::min(n, std::max(1.0, std::ceil((n + 1) * share)));
  return values[static_cast<std::size_t>(rank) - 1];
}

struct Peaks {
  std::size_t count = 0;
  double ceiling = 0;
};

class Forecast {
 public:
  Forecast(const std::vector<model::MemoryReading>& readings, double horizon_s) : h_(horizon_s) {
    for (const auto& reading : readings) {
      t_.push_back(reading.time);
      x_.push_back(static_cast<double>(reading.bytes));
    }
    n_ = t_.size();
    if (n_ > 1) gap_ = (t_.back() - t_.front()) / static_cast<double>(n_ - 1);
    find_steps();
  }

  Expected run(double confidence) {
    Expected out;
    const std::size_t now = n_ - 1;
    const std::vector<double> rises = alike(now);
    if (!rises.empty()) {
      out.cycle = true;
      out.errors = rises.size();
      out.peak = x_[now] + at_share(rises, 0.5);
      out.margin = at_share(rises, confidence) - at_share(rises, 0.5);
      return out;
    }
    out.peak = peak(now);
    out.margin = 2 * noise_[now];
    std::vector<double> errors;
    const std::size_t every = std::max<std::size_t>(1, std::min<std::size_t>(n_, 300) / 40);
    std::size_t over = 0;  // readings whose horizon is over, newest first
    for (std::size_t i = now; i >= 10 && i < n_ && over < 300; --i) {
      if (t_[now] - t_[i] < h_ || t_[i + 1] > t_[i] + h_) continue;
      ++over;
      if ((now - i) % every == 0) errors.push_back(most_after(i) - peak(i));
    }
    if (errors.size() >= 10) {
      out.errors = errors.size();
      std::vector<double> newest(errors);
      if (newest.size() > 15) newest.resize(15);
      out.margin = std::min(at_share(errors, confidence), at_share(newest, confidence));
    }
    return out;
  }

 private:
  void find_steps() {
    std::vector<double> strange(n_, 0);
    std::vector<double> usual(n_, 0);
    noise_.assign(n_, 0);
    step_.assign(n_, false);
    for (std::size_t i = 1; i < n_; ++i) {
      // Neighbours share the window of the last one of four, counted from the end; the first reading has the
      // window of the first rise.
      std::size_t of = i;
      while (of > 1 && (n_ - 1 - of) % 4 != 0) --of;
      std::vector<double> rises;
      for (std::size_t j = of > 20 ? of - 20 : 1; j <= of + 10 && j < n_; ++j)
        rises.push_back(x_[j] - x_[j - 1]);
      usual[i] = at_share(rises, 0.5);
      std::vector<double> off;
      for (const double rise : rises) off.push_back(std::abs(rise - usual[i]));
      const double deviation = std::max({1.48 * at_share(off, 0.5), 0.001 * x_[i], 1.0});
      noise_[i] = deviation / std::sqrt(2.0);
      strange[i] = (x_[i] - x_[i - 1] - usual[i]) / deviation;
      step_[i] = std::abs(strange[i]) > 4;
    }
    // A neighbour of a step that moves the same way by two deviations is a part of it, on and on.
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 1; i < n_; ++i) {
        const bool before = i > 1 && step_[i - 1] && strange[i] * strange[i - 1] > 0;
        const bool after = i + 1 < n_ && step_[i + 1] && strange[i] * strange[i + 1] > 0;
        if (step_[i] || std::abs(strange[i]) <= 2 || (!before && !after)) continue;
        step_[i] = more = true;
      }
    }
    gentle_ = x_;
    for (std::size_t i = 1; i < n_; ++i)
      gentle_[i] = gentle_[i - 1] + (step_[i] ? usual[i] : x_[i] - x_[i - 1]);
  }

  // The peaks that demand has fallen from, up to reading `last`.
  Peaks peaks(std::size_t last) const {
    const double least = *std::min_element(x_.begin(), x_.end());
    const double most = *std::max_element(x_.begin(), x_.end());
    const double fall = std::max(0.25 * (most - least), 0.01 * most);
    std::vector<double> tops;
    double high = x_[0];
    double low = x_[0];
    enum class Way { unknown, up, down } way = Way::unknown;
    for (std::size_t i = 0; i <= last; ++i) {
      if (way == Way::down) {
        low = std::min(low, x_[i]);
        if (x_[i] > low + fall) {
          way = Way::up;
          high = x_[i];
        }
        continue;
      }
      high = std::max(high, x_[i]);
      if (way == Way::unknown && x_[i] > low + fall) way = Way::up;
      if (x_[i] < high - fall) {
        if (way == Way::up) tops.push_back(high);
        way = Way::down;
        low = x_[i];
      } else if (way == Way::unknown) {
        low = std::min(low, x_[i]);
      }
    }
    Peaks out{.count = tops.size()};
    for (std::size_t i = tops.size() >= 2 ? tops.size() - 2 : 0; i < tops.size(); ++i)
      out.ceiling = std::max(out.ceiling, tops[i]);
    return out;
  }

  std::size_t first_in(std::size_t i, double window) const {
    const double reach = std::max(window, window / 2 * gap_);
    std::size_t first = 0;
    while (t_[first] < t_[i] - reach) ++first;
    return first;
  }

  // Slope and its deviation; 0 and 0 of fewer than six readings.
  std::pair<double, double> slope(std::size_t i, double window) const {
    const std::size_t first = first_in(i, window);
    const auto n = static_cast<double>(i + 1 - first);
    if (n < 6) return {0, 0};
    double mt = 0;
    double mx = 0;
    for (std::size_t j = first; j <= i; ++j) {
      mt += (t_[j] - t_[i]) / n;
      mx += (gentle_[j] - gentle_[i]) / n;
    }
    double tt = 0;
    double tx = 0;
    for (std::size_t j = first; j <= i; ++j) {
      tt += (t_[j] - t_[i] - mt) * (t_[j] - t_[i] - mt);
      tx += (t_[j] - t_[i] - mt) * (gentle_[j] - gentle_[i] - mx);
    }
    return {tx / tt, noise_[i] / std::sqrt(tt)};
  }

  double peak(std::size_t i) const {
    const auto [recent, recent_sd] = slope(i, 30);
    auto [usual, usual_sd] = slope(i, 60);
    if (std::abs(recent - usual) > 4 * recent_sd) {
      usual = recent;
      usual_sd = recent_sd;
    }
    double carried = std::max(0.0, usual - usual_sd);
    double rise = carried * h_;
    const std::size_t before = first_in(i, 30);
    const auto [earlier, earlier_sd] = slope(before, 30);
    if (carried > 0 && before < i && earlier > -earlier_sd && recent - earlier > recent_sd + earlier_sd) {
      carried = recent;
      rise = recent * h_ + (recent - earlier) / (t_[i] - t_[before]) * h_ * h_ / 2;
    }
    std::vector<double> levels;
    for (std::size_t back = 0; back < 5 && back <= i; ++back) {
      levels.push_back(x_[i - back] + carried * (t_[i] - t_[i - back]));
      if (step_[i - back]) break;
    }
    const double level = at_share(levels, 0.5);
    const Peaks known = peaks(i);
    if (known.count == 0) return level + rise;
    return std::max(level, std::min(level + rise, known.ceiling));
  }

  double most_after(std::size_t i) const {
    double most = 0;
    double by_steps = 0;
    for (std::size_t j = i + 1; j < n_ && t_[j] <= t_[i] + h_; ++j) {
      if (step_[j] && x_[j] > x_[j - 1]) by_steps += x_[j] - x_[j - 1];
      most = std::max(most, x_[j] - by_steps);
    }
    return i + 1 < n_ ? most : x_[i];
  }

  // The rises after the instants that were most like now; empty where the demand has no cycles.
  std::vector<double> alike(std::size_t now) const {
    const Peaks known = peaks(now);
    const double range = *std::max_element(x_.begin(), x_.end()) - *std::min_element(x_.begin(), x_.end());
    if (now < 4 || known.count < 2 || x_[now] > known.ceiling + 0.05 * range) return {};
    std::vector<std::pair<double, std::size_t>> list;
    for (std::size_t i = 3; i < now; ++i) {
      if (t_[i] + h_ > t_[now] || t_[i + 1] > t_[i] + h_) continue;
      const double turn = std::abs((x_[i] - x_[i - 3]) - (x_[now] - x_[now - 3]));
      list.emplace_back(std::abs(x_[i] - x_[now]) + 1.5 * turn, i);
    }
    const std::size_t count = std::max<std::size_t>(10, 5 * known.count);
    if (list.size() < 2 * count) return {};
    std::sort(list.begin(), list.end());
    std::vector<double> rises;
    for (std::size_t k = 0; k < count; ++k)
      rises.push_back(std::max(0.0, most_after(list[k].second) - x_[list[k].second]));
    return rises;
  }

  double h_;
  std::size_t n_ = 0;
  double gap_ = 1;
  std::vector<double> t_;
  std::vector<double> x_;
  std::vector<double> gentle_;
  std::vector<double> noise_;
  std::vector<bool> step_;
};

}  // namespace

Expected forecast(const std::vector<model::MemoryReading>& readings, double horizon_s, double confidence) {
  return Forecast(readings, horizon_s).run(confidence);
}

ForecastVerdict judge(const std::vector<model::MemoryReading>& demand,
                      const std::vector<std::optional<double>>& expected, const ForecastTask& task) {
  ForecastVerdict out;
  const double h = task.horizon_s;
  const auto bytes = [&](std::size_t i) { return static_cast<double>(demand[i].bytes); };
  const auto above = [&](std::size_t i) { return bytes(i) > task.line_bytes; };
  const auto need = [&](std::size_t i) { return expected[i] ? *expected[i] - task.line_bytes : 0; };
  for (std::size_t i = 0; i < demand.size(); ++i) {
    bool crosses = above(i) && demand[i].time - demand[0].time >= h;
    for (std::size_t j = 0; j < i; ++j)
      if (above(j) && demand[j].time >= demand[i].time - h) crosses = false;
    if (!crosses) continue;
    ++out.crossings;
    std::size_t before = 0;
    for (std::size_t j = 0; j < i; ++j)
      if (demand[j].time <= demand[i].time - h) before = j;
    if (need(before) > 0) continue;
    double over = 0;
    for (std::size_t j = i; j < demand.size(); ++j)
      if (demand[j].time <= demand[i].time + h) over = std::max(over, bytes(j) - task.line_bytes);
    double lowest = bytes(i);
    double step = 0;
    for (std::size_t a = before; a < i; ++a) {
      lowest = std::min(lowest, bytes(a));
      for (std::size_t b = a + 1; b <= i; ++b)
        if (b == a + 1 || demand[b].time - demand[a].time <= std::min(5.0, h / 4))
          step = std::max(step, bytes(b) - bytes(a));
    }
    const bool sudden = step >= 0.05 * task.capacity_bytes && step >= (bytes(i) - lowest) / 2 &&
                        bytes(i) - step <= task.line_bytes;
    ForecastFaults& faults = sudden ? out.sudden : out.missed;
    ++faults.events;
    faults.bytes += over;
  }
  std::optional<double> last;
  double most = 0;
  for (std::size_t i = 0; i < demand.size(); ++i) {
    bool needless = need(i) > 0 && demand[i].time + 2 * h <= demand.back().time;
    for (std::size_t j = i; j < demand.size(); ++j)
      if (demand[j].time <= demand[i].time + 2 * h &&
          bytes(j) >= task.line_bytes - 0.05 * task.capacity_bytes)
        needless = false;
    if (!needless) continue;
    if (!last || demand[i].time - *last > h) {
      out.needless.bytes += most;
      ++out.needless.events;
      most = 0;
    }
    last = demand[i].time;
    most = std::max(most, need(i));
  }
  out.needless.bytes += most;
  return out;
}

}  // namespace berth::policies::naive
