// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::replay {

// A mean over time: each value holds until the next one.
class TimeMean {
 public:
  void add(double value, double held_s) {
    sum_ += value * held_s;
    time_s_ += held_s;
  }
  std::optional<double> mean() const { return time_s_ > 0 ? std::optional(sum_ / time_s_) : std::nullopt; }

 private:
  double sum_ = 0;
  double time_s_ = 0;
};

// The figures of one side of a replay. Times are of the trace; a gap of the recording counts as
// kLongestTick_s.
struct Figures {
  static constexpr double kLongestTick_s = 60;
  // Tasks that are counted one by one: a trace may name new ones at every tick.
  static constexpr std::size_t kMostTasks = 100'000;

  std::uint64_t ticks = 0;
  double time_s = 0;
  std::map<std::string, std::uint64_t> actions;  // number of actions by kind

  // Interference.
  TimeMean score;            // of the node
  double score_highest = 0;  // likewise
  // Evicted work.
  std::uint64_t evictions = 0;
  double evicted_cost_s = 0;  // as the policies priced it
  double evicted_cpu_s = 0;   // CPU time that the evicted workloads had used
  std::uint64_t evicted_bytes = 0;
  // Lateness.
  double straggling_s = 0;  // task-seconds for which tasks were stragglers
  double lateness_s = 0;    // sum over tasks: by how much each would miss its deadline, when last judged
  std::size_t late_tasks = 0;
  std::size_t tasks = 0;
  std::set<std::string> relocations;  // stragglers that the host could not help
  // Best-effort work pays for others with its CPU quota.
  double withheld_core_s = 0;
  // Capacity.
  TimeMean cpu_advertised;     // cores
  TimeMean memory_advertised;  // bytes
  double closed_s = 0;         // time in which the host took no new work

  // Counts a plan, made of `seen`; it holds until the next one.
  void add(const model::Plan& plan, const model::Snapshot& seen);
  // Call it after the last plan.
  void finish();

 private:
  // The values that hold until the next tick.
  struct Present {
    double time = 0;
    double score = 0;
    bool scored = false;
    std::size_t stragglers = 0;
    double withheld_cores = 0;
    std::optional<double> cpu_advertised;
    std::optional<double> memory_advertised;
    bool closed = false;
  };
  void hold_until(double time);
  void count_actions(const model::Plan& plan, const model::Snapshot& seen);

  std::optional<Present> present_;
  std::map<std::string, double> late_by_;  // of each task with a deadline: 0 or more
};

// The figures as numbers, in the order of showing. A figure that is not known is nullopt.
struct Figure {
  enum class Unit { number, seconds, cores, bytes, core_seconds, score };
  const char* name;   // member of berth.replay/1
  const char* title;  // for people
  Unit unit;
  std::optional<double> value;
  bool less_is_better;
};
std::vector<Figure> list_figures(const Figures& figures);

}  // namespace berth::replay
