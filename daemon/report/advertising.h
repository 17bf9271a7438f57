// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/log_entry.h"
#include "model/error.h"
#include "model/node_state.h"
#include "model/plan.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The file of the host's advertisement for other programs: RUNTIME_DIR/state.json
// (docs/contract/documents.md, berth.state/1). Publishing changes nothing on the host, so both modes do it.
class Advertising {
 public:
  explicit Advertising(const std::filesystem::path& runtime_dir);

  // Replaces the file at once, so that a reader never sees half of it. Does nothing for a plan without the
  // policy. `advertised`: after the plan. `interval_s`: the time to the next tick, by which a reader knows a
  // hung berthd. Error io.
  model::Result<void> write(const model::Plan& plan, const model::Advertised& advertised,
                            const std::vector<model::Departure>& departures, const char* mode,
                            double interval_s) const;
  // Removes the file: a file that is not kept up to date must not be believed.
  void remove() const;

 private:
  std::filesystem::path file_;
};

// An entry (kind "advertise", result "applied") for each resource whose state the plan changed. `before` is
// the advertisement before it. A moving factor is too frequent for the log.
std::vector<LogEntry> advertising_entries(const model::Advertised& before, const model::Plan& plan,
                                          const char* mode);

// A berth.state/1 document of a plan with findings of the policy, on one line. Of the departures the first
// ones are kept, kMaxDeparturesBytes in all.
std::string state_json(const model::Plan& plan, const model::Advertised& advertised,
                       const std::vector<model::Departure>& departures, const char* mode, double interval_s);

}  // namespace berth::daemon
