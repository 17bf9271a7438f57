// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/eviction_marks.h"
#include "daemon/held.h"
#include "daemon/log_entry.h"
#include "daemon/observer.h"
#include "model/plan.h"

#include <string>
#include <vector>

namespace berth::daemon {

// What berth would hold by now if it had enforced instead of observed. Without it every tick of observe mode
// would place all workloads anew, each time a little differently as figures move, and log decisions that
// enforcing would never take.
class Shadow {
 public:
  const Holdings& holdings() const { return holdings_; }
  // Whom it would be evicting: memory that berth would have freed counts as free, though here it never is.
  const EvictionMarks& evictions() const { return evictions_; }
  // Lets go of workloads that ended.
  void follow(const Observer& observer);
  // As Evictor's.
  void look_at_memory(bool short_now, double now, double hold_s) {
    evictions_.look_at_memory(short_now, now, hold_s);
  }
  // Takes a plan, made of a snapshot with holdings(), as carried out. Its actions as log entries (result
  // "observed").
  std::vector<LogEntry> apply(const model::Plan& plan, const Observer& observer);

 private:
  Holdings holdings_;
  EvictionMarks evictions_;
};

// A log entry of `action` with everything but its outcome. `original` is what a limit that the action changes
// was before berth, as canonical text.
LogEntry entry_of(const model::Action& action, double time, const char* mode,
                  const std::string& original = "");
// What a plan would do to the cgroups as they are; an entry (result "observed") an action.
std::vector<LogEntry> observed_entries(const model::Plan& plan, const Observer::Readings& readings);

}  // namespace berth::daemon
