// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/log_entry.h"
#include "model/error.h"
#include "model/plan.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// What the node advertises, from tick to tick, and the file where others read it: RUNTIME_DIR/state.json
// (docs/contract.md, berth.state/1). Publishing changes nothing on the host, so it is done in both modes.
class Advertising {
 public:
  explicit Advertising(const std::filesystem::path& runtime_dir);

  // For the next tick's snapshot.
  const model::Advertised& advertised() const { return advertised_; }
  // Takes what a plan advertises. An entry (kind "advertise", result "applied") for each resource of which
  // the state changed; a factor that moves is too frequent to be logged.
  std::vector<LogEntry> take(const model::Plan& plan, const char* mode);

  // Replaces the file at once, so that a reader never meets half of it; nothing for a plan without the
  // policy. Error io.
  model::Result<void> write(const model::Plan& plan, const char* mode) const;
  // Nobody is to believe a file that nobody keeps.
  void remove() const;

 private:
  std::filesystem::path file_;
  model::Advertised advertised_;
};

// A berth.state/1 document of a plan with findings of the policy, on one line.
std::string state_json(const model::Plan& plan, const model::Advertised& advertised, const char* mode);

}  // namespace berth::daemon
