// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/sampler.h"
#include "cgroup/value.h"
#include "daemon/ledger/log_entry.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "model/standing.h"

#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// A log entry of `action` without its outcome. `original` is the value before berth of the attribute that the
// action changes; nullopt: not known.
LogEntry entry_of(const model::Action& action, double time, const char* mode,
                  const std::optional<cgroup::Value>& original = std::nullopt);

// The effect of a plan that is not carried out; one entry (result "observed") an action. `snapshot` is that
// of the plan, and `standing` has what earlier plans would hold.
std::vector<LogEntry> observed_entries(const model::Plan& plan, const model::Snapshot& snapshot,
                                       const cgroup::Sampler::Readings& readings,
                                       const model::Standing& standing);

// The workloads whose pins these changed on the host.
std::vector<std::string> changed_pins(const std::vector<LogEntry>& entries);

}  // namespace berth::daemon
