// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "model/standing.h"
#include "model/straggler_findings.h"
#include "model/workload.h"
#include "policies/settings.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::replay {

// A limit that berth would hold.
template <typename T>
struct StandingLimit {
  std::optional<T> value;     // nullopt: no limit
  std::optional<T> original;  // before berth
  model::HeldLimit held;
};

// All that berth would hold of one run of a workload.
struct StandingRun {
  double created = 0;  // with the id, it names the run
  model::CpuSet cpus;  // empty: not pinned
  std::optional<double> pinned_at;
  model::CpuSet memory_nodes;
  bool cpu_idle = false;  // made idle by these plans
  std::optional<StandingLimit<double>> cpu_quota;
  std::optional<StandingLimit<std::uint64_t>> memory_high;
  std::optional<double> evicted_at;
  double gone_at = 0;  // with evicted_at: when it has ended
};

// All that the plans of a replay have made of the recorded host so far: pins, limits and evictions,
// and what policies remember. The load stays as it was recorded.
class Standing {
 public:
  // `recorded`: the first snapshot. Its holdings stand at the beginning.
  explicit Standing(const model::Snapshot& recorded);

  // Writes the recorded snapshot into `seen` as the policies would have seen it: with what stands now in
  // place of what was held. A workload whose eviction has had its time of grace is gone, and its memory is
  // free.
  void put_on(const model::Snapshot& recorded, model::Snapshot& seen);
  // Takes a plan, made of `seen`, as carried out.
  void take(const model::Plan& plan, const model::Snapshot& seen, const policies::PolicySettings& settings);

  const std::map<std::string, StandingRun>& runs() const { return runs_; }
  // Whether this run has ended by an eviction of these plans.
  bool is_gone(const model::Workload& workload, double now) const;

 private:
  StandingRun& run_of(const model::Workload& workload);
  void forget_ended_runs(const model::Snapshot& recorded);
  // The last eviction has not ended before `at`.
  void note_eviction_end(double at);
  void remove_gone(model::Snapshot& seen);
  void change_limits(const model::Plan& plan, const model::Action& action, const model::Workload& workload);
  void evict(const model::Evict& action, const model::Workload& workload, double now);

  std::map<std::string, StandingRun> runs_;  // those with anything to tell
  std::optional<double> eviction_ended_at_;
  model::Standing remembered_;  // by the policies
  std::map<std::string, model::Resources> room_;
  bool room_known_ = false;  // a plan has told it
};

}  // namespace berth::replay
