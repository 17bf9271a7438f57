// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>
#include <sys/types.h>

namespace berth::daemon {

// A trial that runs, or whose settings were kept, for the status.
struct TrialReport {
  bool kept = false;  // it has ended, and its settings stay until the next reload
  pid_t pid = 0;      // of its caller; 0 if not known
  uid_t uid = 0;
  std::string side;                            // "a" or "b"; "" before the first window
  double begun = 0;                            // epoch seconds, of the wall clock
  std::optional<double> until = std::nullopt;  // when it ends if its caller does not go on
};

nlohmann::json trial_json(const std::optional<TrialReport>& report);

}  // namespace berth::daemon
