// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <sys/types.h>

namespace berth::daemon {

// The cgroup v2 path, without a leading slash, of a process (PROC_ROOT/PID/cgroup, cgroups(7)). nullopt where
// there is no such process, or its effective user is not `uid`: then the number is another process's by now.
std::optional<std::string> cgroup_of_process(const std::filesystem::path& proc_root, pid_t pid, uid_t uid);

}  // namespace berth::daemon
