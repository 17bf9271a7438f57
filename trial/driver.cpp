// SPDX-License-Identifier: Apache-2.0
#include "trial/driver.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <set>
#include <utility>

#include <fmt/core.h>

namespace berth::trial {

using model::ErrorKind;

namespace {

constexpr double kShortestWindow_s = 20;
constexpr double kUsualWindow_s = 60;
constexpr double kUsualWindows = 30;
constexpr double kWarmUpTicks = 3;
// The daemon waits so much longer for the next window: a look may take its time on a busy host.
constexpr double kSlack_s = 30;
// Of the time that a window counts, the command may measure this part; the rest is for its start and end.
constexpr double kMetricPart = 0.8;

// A minute is "60 s", an hour "3600 s": lengths are compared with what the user gave.
std::string seconds_text(double seconds) { return fmt::format("{:g} s", seconds); }

class Run {
 public:
  Run(Host& host, Measured& measured) : host_(host), measured_(measured) {}

  // False where the trial ends.
  bool block(std::size_t number) {
    std::array<Figures, 2> figures;
    for (std::size_t half = 0; half < 2; ++half) {
      const Side side = measured_.order[number][half];
      auto& window = figures[static_cast<std::size_t>(side)];
      if (!take_window(2 * number + half, side, window)) return false;
    }
    if (number == 0 && figures[0].empty() && figures[1].empty()) {
      return fail(model::Error(ErrorKind::refused,
                               "the first two windows measured nothing: no workload of a rule used CPU"));
    }
    measured_.blocks.push_back(std::move(figures));
    return true;
  }

 private:
  bool fail(model::Error error) {
    measured_.failure = std::move(error);
    return false;
  }
  bool wait_until(double time) {
    const double left_s = time - host_.now();
    if (left_s <= 0) return true;
    measured_.interrupted = !host_.wait(left_s);
    return !measured_.interrupted;
  }
  void show(std::size_t number, Side side) {
    const std::size_t all = 2 * measured_.order.size();
    const double left_s =
        ends_ - host_.now() + static_cast<double>(all - number - 1) * measured_.pace.window_s;
    host_.show(number, all, side, left_s);
  }

  bool take_window(std::size_t number, Side side, Figures& figures) {
    const Pace& pace = measured_.pace;
    const double begun = host_.now();
    ends_ = begun + pace.window_s;
    show(number, side);
    if (const auto used = host_.use(side, pace.window_s + kSlack_s); !used) return fail(used.error());
    const double counts_from = begun + pace.warm_up_s;
    while (host_.now() < counts_from) {
      if (!wait_until(std::min(host_.now() + pace.tick_s, counts_from))) return false;
      show(number, side);
    }
    const auto first = host_.look();
    if (!first) return fail(first.error());
    Window window;
    window.begin(*first);
    host_.begin_metric(pace.counted_s() * kMetricPart);
    const bool whole = count(window, number, side);
    const auto printed = host_.end_metric();
    if (!whole) return false;
    figures = window.figures();
    return take_metric(printed, number, figures);
  }

  bool count(Window& window, std::size_t number, Side side) {
    while (host_.now() < ends_) {
      if (!wait_until(std::min(host_.now() + measured_.pace.tick_s, ends_))) return false;
      const auto snapshot = host_.look();
      if (!snapshot) return fail(snapshot.error());
      window.take(*snapshot);
      show(number, side);
    }
    return true;
  }

  bool take_metric(const std::optional<model::Result<double>>& printed, std::size_t number,
                   Figures& figures) {
    if (!printed) return true;
    if (*printed) {
      figures[{"", Figure::metric}] = **printed;
      return true;
    }
    ++measured_.metric_failures;
    measured_.metric_problem = printed->error().message();
    return number > 0 || fail(printed->error());
  }

  Host& host_;
  Measured& measured_;
  double ends_ = 0;  // of the present window
};

}  // namespace

model::Result<Pace> make_pace(double length_s, double window_s, double tick_s) {
  Pace pace;
  pace.tick_s = tick_s;
  const double usual_s = std::clamp(length_s / kUsualWindows, kShortestWindow_s, kUsualWindow_s);
  pace.window_s = window_s > 0 ? window_s : std::max(usual_s, length_s / (2.0 * kMostBlocks));
  pace.warm_up_s = std::max(pace.window_s / 4, kWarmUpTicks * tick_s);
  if (!(length_s <= kLongestTrial_s))
    return model::fail(ErrorKind::refused,
                       fmt::format("a trial of more than {} is too long", seconds_text(kLongestTrial_s)));
  if (pace.window_s > kLongestWindow_s)
    return model::fail(ErrorKind::refused,
                       fmt::format("a window of more than {} is too long", seconds_text(kLongestWindow_s)));
  if (pace.counted_s() < kFewestTicks * tick_s) {
    return model::fail(ErrorKind::refused,
                       fmt::format("a window of {} is too short: berthd ticks every {}, a window counts {:g} "
                                   "ticks at least, after a warm-up of {}; give --window {}",
                                   seconds_text(pace.window_s), seconds_text(tick_s), kFewestTicks,
                                   seconds_text(pace.warm_up_s),
                                   seconds_text(std::ceil((kWarmUpTicks + kFewestTicks) * tick_s))));
  }
  pace.blocks = static_cast<std::size_t>(length_s / (2 * pace.window_s) + 1e-9);
  if (pace.blocks < kFewestBlocks) {
    return model::fail(
        ErrorKind::refused,
        fmt::format("{} has room for {} windows of {}, and fewer than {} can show no "
                    "difference; give --for {} or a shorter --window",
                    seconds_text(length_s), 2 * pace.blocks, seconds_text(pace.window_s), 2 * kFewestBlocks,
                    seconds_text(2 * static_cast<double>(kFewestBlocks) * pace.window_s)));
  }
  if (pace.blocks > kMostBlocks) {
    return model::fail(
        ErrorKind::refused,
        fmt::format("{} has {} windows of {}, more than {}; give a longer --window", seconds_text(length_s),
                    2 * pace.blocks, seconds_text(pace.window_s), 2 * kMostBlocks));
  }
  return pace;
}

std::vector<std::array<Side, 2>> make_order(std::size_t blocks, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::array<Side, 2>> order;
  for (std::size_t i = 0; i < blocks; ++i) {
    const bool swapped = (random() >> 63) != 0;
    order.push_back(swapped ? std::array{Side::b, Side::a} : std::array{Side::a, Side::b});
  }
  return order;
}

std::optional<std::string> why_useless(const model::Snapshot& snapshot, bool with_metric) {
  if (with_metric) return std::nullopt;
  if (snapshot.workloads.empty())
    return "no workload runs that berth knows: there is nothing to compare, and no --metric";
  const bool used = std::any_of(snapshot.workloads.begin(), snapshot.workloads.end(),
                                [](const auto& it) { return !it.usage.without_cpu(); });
  if (!used) return "no workload used CPU of late: there is nothing to compare, and no --metric";
  return std::nullopt;
}

Measured run(Host& host, const Pace& pace, std::uint64_t seed) {
  Measured measured;
  measured.pace = pace;
  measured.order = make_order(pace.blocks, seed);
  Run windows(host, measured);
  for (std::size_t number = 0; number < pace.blocks && windows.block(number); ++number) {
  }
  return measured;
}

Result evaluate(const Measured& measured, std::uint64_t seed) {
  Result result;
  std::set<std::string> services;
  std::map<Key, Series> series;
  for (std::size_t block = 0; block < measured.blocks.size(); ++block) {
    const auto& [a, b] = measured.blocks[block];
    for (const auto& [key, value] : a) {
      const auto other = b.find(key);
      if (other == b.end()) continue;
      services.insert(key.service);
      auto& values = series[key];
      values.resize(measured.blocks.size());
      values[block] = Pair{value, other->second};
    }
  }
  if (services.size() > kMostServices + 1) {
    result.left_out = services.size() - kMostServices - 1;
    const std::string& last = *std::next(services.begin(), kMostServices);
    std::erase_if(series, [&last](const auto& entry) { return entry.first.service > last; });
  }
  std::vector<Series> all;
  all.reserve(series.size());
  for (auto& [key, values] : series) all.push_back(std::move(values));
  const auto changes = compare(all, seed);
  auto change = changes.begin();
  for (const auto& [key, values] : series) result.rows.push_back({key, *change++});
  return result;
}

std::optional<Side> better_side(const Row& row) {
  if (!row.change.shown) return std::nullopt;
  return (row.change.change < 0) == less_is_better(row.key.figure) ? Side::b : Side::a;
}

std::optional<Side> better_side(const Result& result, Figure figure) {
  for (const Row& row : result.rows) {
    if (row.key.service.empty() && row.key.figure == figure) return better_side(row);
  }
  return std::nullopt;
}

}  // namespace berth::trial
