// SPDX-License-Identifier: Apache-2.0
// Workloads by the names that people have for them.
#pragma once

#include "cli/daemon_client.h"
#include "cli/problem.h"

#include <string>
#include <vector>

namespace berth::cli {

// The one of `ids` that `given` means: itself, else the one whose last path component it is, with or without
// its unit's ".service" or ".scope"; `given` where there is none. Problem wrong_use where several are meant.
Outcome<std::string> meant_by(const std::string& given, const std::vector<std::string>& ids);

struct Addressed {
  DaemonClient daemon;
  std::string id;
};

// The daemon, and the one workload that `given` means; `given` itself where it has no such workload, so that
// its own answer is the one to be read. Problem wrong_use where it cannot be an id; those of meant_by() and
// of DaemonClient::connect().
Outcome<Addressed> address(const std::string& given);

}  // namespace berth::cli
