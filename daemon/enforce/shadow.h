// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/eviction_marks.h"
#include "daemon/ledger/held.h"
#include "daemon/ledger/log_entry.h"
#include "daemon/observe/observer.h"
#include "model/plan.h"

#include <string>
#include <vector>

namespace berth::daemon {

// The values that berth would hold by now if it had enforced instead of observed. Without it, every tick of
// observe mode would place all workloads anew, each time a little differently. It would log decisions that
// enforcing would never take.
class Shadow {
 public:
  const Holdings& holdings() const { return holdings_; }
  // The evictions that would be under way: their memory counts as free, though it never will be here.
  const EvictionMarks& evictions() const { return evictions_; }
  // Releases workloads that ended.
  void follow(const Observer& observer);
  // Takes a plan, made of a snapshot with holdings(), as carried out. Returns its actions as log entries
  // (result "observed").
  std::vector<LogEntry> apply(const model::Plan& plan, const Observer& observer);

 private:
  Holdings holdings_;
  EvictionMarks evictions_;
};

// A log entry of `action` without its outcome. `original` is the value before berth of the limit that the
// action changes; nullopt: not known.
LogEntry entry_of(const model::Action& action, double time, const char* mode,
                  const std::optional<cgroup::Value>& original = std::nullopt);
// The effect of a plan on the present cgroups; one entry (result "observed") an action.
std::vector<LogEntry> observed_entries(const model::Plan& plan, const Observer::Readings& readings);

}  // namespace berth::daemon
