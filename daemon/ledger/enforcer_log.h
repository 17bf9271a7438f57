// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/writer.h"
#include "daemon/ledger/log_entry.h"
#include "model/attribute.h"

#include <cstdint>
#include <string>
#include <vector>

namespace berth::daemon {

inline constexpr const char* kEnforce = "enforce";

// A failure that repeats tick after tick is logged the first time, and then ever more rarely.
bool worth_saying(std::uint32_t attempt);

// An entry of the enforcer's without an action.
LogEntry blank_entry(double now, std::string kind, std::string workload, model::Attribute attribute,
                     std::string policy);

// One entry for all of these interrupts.
LogEntry interrupts_entry(double now, const char* mode, const std::vector<int>& numbers, const char* result);

// One for irqbalance's banned CPUs.
LogEntry irqbalance_entry(double now, const char* mode, const char* result);

// Entries for the results of a restore.
std::vector<LogEntry> entries_of(const cgroup::RestoreReport& report, double now, const char* mode,
                                 const std::string& reason);
std::vector<LogEntry> entries_of(const cgroup::InterruptsBack& back, double now, const char* mode,
                                 const std::string& reason);

}  // namespace berth::daemon
