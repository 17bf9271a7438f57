// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::os {

// One line of /proc/PID/mountinfo (proc(5)).
struct Mount {
  std::string root;   // the directory of the file system that the mount shows; "/" is all of it
  std::string point;  // where it is mounted
  std::string type;
  std::string options;  // of the superblock
};

// Lines in the kernel's order: of two mounts at one point the later one covers the other. nullopt where
// PROC_ROOT/self/mountinfo cannot be read. No file system is asked.
std::optional<std::vector<Mount>> read_mounts(const std::filesystem::path& proc_root);

// The mount that an absolute path without symbolic links lies on; nullptr where `mounts` has none.
const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path);

}  // namespace berth::os
