// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"

#include <array>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::trial {

// A figure that a trial compares. The first five are of a service, and of the host.
enum class Figure {
  runq_p99,     // microseconds: 99th percentile of the waits of its threads, mean of ticks and instances
  runq_median,  // microseconds: the same of the median
  cpi,          // cycles per instruction
  throttled,    // share of the time for which its own quota kept it from running
  progress,     // share of the task, an hour
  batch_cpu,    // cores that best-effort work used
  metric,       // the number that the caller's command printed
};
inline constexpr std::array kFigures{Figure::runq_p99, Figure::runq_median, Figure::cpi,   Figure::throttled,
                                     Figure::progress, Figure::batch_cpu,   Figure::metric};

// "runq-p99", "runq-median", "cpi", "throttled", "progress", "batch-cpu", "metric".
const char* to_string(Figure figure);
// nullopt for another word.
std::optional<Figure> parse_figure(std::string_view name);
// The unit in words; "" of a metric.
const char* unit_of(Figure figure);
// Whether a smaller one is better. A metric is taken for a wait.
bool less_is_better(Figure figure);

struct Key {
  std::string service;  // "": the host
  Figure figure = Figure::runq_p99;

  friend auto operator<=>(const Key&, const Key&) = default;
};
using Figures = std::map<Key, double>;

// The figures of one window: of the ticks after begin().
class Window {
 public:
  // The snapshot with which the window begins to count.
  void begin(const model::Snapshot& snapshot);
  // A later one. It may have the samples of several ticks. Instructions and throttling are known of the
  // newest tick alone.
  void take(const model::Snapshot& snapshot);
  // Those that are known. A run that came in the window counts from its second sample on. A task counts for
  // progress if it ran for the whole window.
  Figures figures() const;

 private:
  struct Mean {
    double sum = 0;
    double weight = 0;
    void add(double value, double by = 1) {
      sum += value * by;
      weight += by;
    }
  };
  struct Run {
    std::string service;
    bool batch = false;
    double seen = 0;                 // time of the newest sample
    std::optional<double> begun_at;  // progress, where it was known at the beginning
    std::optional<double> progress;
    std::map<Figure, Mean> means;
  };
  void count(Run& run, const model::Workload& workload);

  double begun_ = 0;
  double ended_ = 0;
  double batch_core_s_ = 0;
  bool batch_known_ = false;
  std::map<std::string, Run> runs_;  // by workload
};

}  // namespace berth::trial
