// SPDX-License-Identifier: Apache-2.0
// The entries of the decision log that a caller wants.
#pragma once

#include "daemon/ledger/log_entry.h"
#include "model/error.h"

#include <map>
#include <optional>
#include <string>

namespace berth::daemon {

// An empty member accepts every entry.
struct LogFilter {
  std::optional<double> since;  // epoch seconds; older entries are left out
  std::string workload;         // an id, or its end after a "/", with or without .service or .scope
  std::string policy;
  std::string kind;

  bool is_empty() const { return !since && workload.empty() && policy.empty() && kind.empty(); }
};

bool accepts(const LogFilter& filter, const LogEntry& entry);

// Of the keys "since" (epoch seconds as text), "workload", "policy" and "kind". Error invalid_input naming
// another key, or a value that is empty or no time.
model::Result<LogFilter> parse_filter(const std::map<std::string, std::string>& values);

}  // namespace berth::daemon
