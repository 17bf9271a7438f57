// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/processes.h"

#include <filesystem>

namespace berth::daemon {

// Whether SIGPWR decommissions the process instead of ending it at once. It must be a Spark executor's JVM,
// by its command line, that handles the signal (SigCgt of PROC_ROOT/PID/status, proc(5)). It does so only
// where spark.decommission.enabled is set (Spark's configuration reference).
bool can_be_decommissioned(const std::filesystem::path& proc_root, const cgroup::Process& process);

}  // namespace berth::daemon
