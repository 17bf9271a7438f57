// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/hierarchy.h"
#include "model/capability.h"
#include "model/topology.h"

#include <optional>
#include <string>
#include <vector>

namespace berth::daemon {

// The state of the daemon's own equipment. Where a problem is given, the thing is missing because of it.
struct Equipment {
  std::optional<model::Capability> systemd;
  model::Capability pressure_triggers;
  model::Capability gpus;
  std::optional<model::Capability> metrics;  // nullopt where they are not to be served
  std::optional<std::string> journal_problem;
  std::optional<std::string> decision_log_problem;
  std::optional<std::string> bus_problem;
  std::optional<std::string> polkit_problem;
};

// All lines of `berthctl status` about capabilities, always in the same order.
std::vector<model::Capability> all_capabilities(const cgroup::Hierarchy& hierarchy,
                                                const model::Topology& topology, const Equipment& equipment);

}  // namespace berth::daemon
