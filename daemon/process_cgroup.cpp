// SPDX-License-Identifier: Apache-2.0
#include "daemon/process_cgroup.h"

#include <fstream>
#include <sstream>

namespace berth::daemon {

namespace {

std::optional<uid_t> effective_user(const std::filesystem::path& process) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("Uid:")) continue;
    std::istringstream ids(line.substr(4));
    uid_t real = 0;
    uid_t effective = 0;
    if (ids >> real >> effective) return effective;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> cgroup_of_process(const std::filesystem::path& proc_root, pid_t pid, uid_t uid) {
  const auto process = proc_root / std::to_string(pid);
  std::ifstream cgroups(process / "cgroup");
  std::optional<std::string> path;
  for (std::string line; std::getline(cgroups, line);) {
    if (line.starts_with("0::/")) path = line.substr(4);
  }
  // After the path: whoever had the number when that was read is the one whose user counts.
  return effective_user(process) == uid ? path : std::nullopt;
}

}  // namespace berth::daemon
