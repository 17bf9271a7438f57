// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "model/standing.h"
#include "model/straggler_findings.h"
#include "policies/settings.h"

#include <map>
#include <optional>
#include <string>

namespace berth::replay {

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

 private:
  // The eviction of a run: it has ended when its time of grace is over.
  struct Ending {
    double created = 0;  // with the id, it names the run
    double gone_at = 0;
  };

  void forget_ended_runs(const model::Snapshot& recorded);
  // The last eviction has not ended before `at`.
  void note_eviction_end(double at);
  void remove_gone(model::Snapshot& seen);

  model::Standing remembered_;
  std::map<std::string, Ending> endings_;  // by workload
  std::optional<double> eviction_ended_at_;
  std::map<std::string, model::Resources> room_;
  bool room_known_ = false;  // a plan has told it
};

}  // namespace berth::replay
