// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/log_entry.h"
#include "daemon/ledger/views.h"
#include "model/node_state.h"
#include "model/plan.h"

#include <vector>

namespace berth::daemon {

// Remembers which workloads berthd ended lately, and which should run on another host, for schedulers
// (docs/contract/documents.md, berth.state/1). All times are of the wall clock.
class Departures {
 public:
  // A departure is told for so long, and a relocation for as long as it is wanted.
  static constexpr double kKept_s = 600;
  // A longer reason is cut in its middle to this length, with a sign for the cut.
  static constexpr std::size_t kMostReasonBytes = 512;

  // Takes the evictions that began, each once: the first step that succeeded. `wall_ahead_s` is added to the
  // times of the entries.
  void take(const std::vector<LogEntry>& entries, double wall_ahead_s);
  // Takes relocations that were found, and looks which ones the plan still finds. `enforces`: whether the
  // plan was carried out. Forgets old departures.
  void take(const std::vector<StragglerNews>& relocate, const model::Plan& plan, bool enforces);

  // kMaxDepartures at most.
  const std::vector<model::Departure>& newest_first() const { return all_; }

 private:
  void add(model::Departure departure);

  std::vector<model::Departure> all_;
};

}  // namespace berth::daemon
