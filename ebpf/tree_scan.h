// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace berth::ebpf {

struct ScannedGroup {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;  // 0 for the root
};

// Every cgroup below `root`, parents before their children, by reading directories only. Enters no mount and
// no symbolic link below `root` (os/beneath.h).
model::Result<std::vector<ScannedGroup>> scan_tree(const std::filesystem::path& root);

}  // namespace berth::ebpf
