// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"

#include <filesystem>
#include <string>
#include <vector>

namespace berth::daemon {

struct HostLoad {
  model::MemoryState memory;  // 0 where it could not be read; `missing` then has the reason
  double load1 = 0;
  std::vector<std::string> missing;  // "FILE: why"
};

// PROC_ROOT/meminfo, PROC_ROOT/pressure/memory and PROC_ROOT/loadavg (proc(5)).
HostLoad read_host_load(const std::filesystem::path& proc_root);

}  // namespace berth::daemon
