// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/workload.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::daemon {

// The reports of progress of each run of a workload, from any source (docs/progress.md). Falling reports are
// kept: the policy has a finding for them.
class ProgressReports {
 public:
  // Reports kept of a run: the policy looks at four.
  static constexpr std::size_t kKept = 8;
  // Of reports closer together than this, the first is kept. Else a workload that reports a thousand times a
  // second would be judged by the last 4 ms. The newest figure, and one that says "done", are never lost.
  static constexpr double kShortestGap_s = 0.2;

  // The source of a report: the workload, or a count of its tasks by a Spark driver.
  enum class Source { own, counted };

  // Takes a report of the run `cgroup_id`; `time` in epoch seconds. A report older than kept ones means that
  // the clock was set back: those after it are dropped. Once a run reports itself, only its own reports
  // count: earlier and later counts of it are dropped. Error invalid_input where `fraction` is not from 0 to
  // 1.
  model::Result<void> add(const std::string& workload, std::uint64_t cgroup_id, double time, double fraction,
                          Source source = Source::own);
  // Drops the runs for which `lives` (workload, cgroup id) is false.
  void keep_if(const std::function<bool(const std::string&, std::uint64_t)>& lives);
  // Drops the counts of all workloads but these: without answers of its driver, a workload must not seem to
  // stand still.
  void keep_counted_of(const std::set<std::string>& workloads);

  // The host slept for `slept_s` before `now`, so no workload could report: earlier reports are that much
  // younger.
  void pass_over(double slept_s, double now);

  // Whether no run has reported.
  bool empty() const { return runs_.empty(); }
  // Oldest first; empty where this run never reported.
  std::vector<model::ProgressReport> of(const std::string& workload, std::uint64_t cgroup_id) const;
  // The newest figure, kept above or not.
  std::optional<double> newest(const std::string& workload, std::uint64_t cgroup_id) const;
  // Since when that figure has not changed, epoch seconds.
  std::optional<double> unchanged_since(const std::string& workload, std::uint64_t cgroup_id) const;

 private:
  struct Run {
    std::uint64_t cgroup_id = 0;
    Source source = Source::own;
    std::vector<model::ProgressReport> reports;  // oldest first
    double newest = 0;
    double since = 0;  // epoch seconds of the first report of it
  };
  const Run* find(const std::string& workload, std::uint64_t cgroup_id) const;

  std::map<std::string, Run> runs_;
};

}  // namespace berth::daemon
