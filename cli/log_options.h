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

// The time of --since in epoch seconds, `now` being the present one. Takes "2h", "2h ago" and "-2h"
// (durations of berth.toml), "today", "yesterday", "2026-11-21", "2026-11-21 10:11", "2026-11-21 10:11:12",
// "10:11", "10:11:12" (local time), and "@1795255870". Problem wrong_use for other text.
Outcome<double> parse_since(const std::string& text, double now);

}  // namespace berth::cli
