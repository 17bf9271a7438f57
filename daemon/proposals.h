// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/log_entry.h"
#include "daemon/observer.h"
#include "model/plan.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace berth::daemon {

// In observe mode the same plan comes up tick after tick: remembers what was proposed, so that only what is
// new is logged.
class Proposals {
 public:
  // Entries (result "observed") for the actions that differ from the last call's for the same workload.
  std::vector<LogEntry> news(const model::Plan& plan, const Observer::Readings& readings);
  void clear() { last_.clear(); }

 private:
  // By workload and kind: the value.
  std::map<std::pair<std::string, std::string>, std::string> last_;
};

// A log entry of `action` with everything but its outcome.
LogEntry entry_of(const model::Action& action, double time, const char* mode);

}  // namespace berth::daemon
