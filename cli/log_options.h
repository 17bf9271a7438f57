// SPDX-License-Identifier: Apache-2.0
// The options by which `log`, `explain` and `watch` choose entries of the decision log.
#pragma once

#include "cli/command_line.h"
#include "cli/document.h"
#include "cli/problem.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace berth::cli {

inline constexpr std::uint32_t kUsualLogEntries = 20;
// As many as the daemon hands out at once.
inline constexpr std::uint32_t kMostLogEntries = 10'000;

struct LogOptions {
  std::optional<std::string> since;
  std::optional<std::string> workload;
  std::optional<std::string> policy;
  std::optional<std::string> kind;

  bool given() const { return since || workload || policy || kind; }
  // For DaemonClient::find_log(). Problem wrong_use where a time cannot be read.
  Outcome<std::map<std::string, std::string>> filter() const;
  // Whether a news of the daemon is wanted, an entry of berth.log/1; `since` plays no part.
  bool accept(const Document& entry) const;
};

// Adds --policy and --kind, and the two others if asked for. The options live as long as the command line.
void declare_log_options(const Options& options, LogOptions& log, bool since, bool workload);

}  // namespace berth::cli
