// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::daemon {

// The outcome of one action; a line of the decision log (docs/contract/log.md).
struct LogEntry {
  double time = 0;       // epoch seconds
  std::string decision;  // empty without a decision (a restore, a foreign writer)
  std::string mode;      // "observe" or "enforce"
  std::string kind;      // model::Action::kind(), "restore", "foreign", "admit", "leaf"
  std::string workload;
  std::string attribute;  // the control file
  std::string old_value;
  std::string new_value;
  std::string policy;
  std::string reason;
  std::string result;  // "applied", "failed", "observed", "restored", "left", "gone", "refused"
  std::optional<std::string> error;
  // The user that may make workloads there (JournalShares::kUnknown if that is not known any more); nullopt:
  // only root. It decides how many entries are kept, and no document has it.
  std::optional<std::uint32_t> user = std::nullopt;

  friend bool operator==(const LogEntry&, const LogEntry&) = default;
};

inline void append(std::vector<LogEntry>& entries, std::vector<LogEntry> more) {
  entries.insert(entries.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Entries of the decision log since berthd started, by kind and result.
using DecisionCounts = std::map<std::pair<std::string, std::string>, std::uint64_t>;

}  // namespace berth::daemon
