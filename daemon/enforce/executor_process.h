// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <sys/types.h>

namespace berth::daemon {

// Whether SIGPWR decommissions the process instead of ending it at once. It must be a Spark executor's JVM,
// by its command line, that handles the signal (SigCgt of PROC_ROOT/PID/status, proc(5)). It does so only
// where spark.decommission.enabled is set (Spark's configuration reference).
// Can hang, if the process keeps its command line from being read.
bool can_be_decommissioned(const std::filesystem::path& proc_root, pid_t pid);

}  // namespace berth::daemon
