// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/writer.h"
#include "model/error.h"

#include <filesystem>

namespace berth::cgroup {

// Where a host keeps what a restore needs.
struct RestorePaths {
  std::filesystem::path state_dir = "/var/lib/berth";
  std::filesystem::path cgroup_root;  // the v2 tree
  std::filesystem::path proc_root = "/proc";
  std::filesystem::path sys_root = "/sys";
  std::filesystem::path systemd_run_dir = "/run/systemd";
};

// Puts back everything the undo journal knows, and the processes of every leaf (cgroup/leaf.h), without a
// daemon. Where the journal cannot be opened that is an error, though the leaves are put back. Error refused,
// and nothing done, where a running berthd holds it. A unit's record stays, and is reported as left, while
// systemd cannot be reached.
model::Result<RestoreReport> restore_host(const RestorePaths& paths);

}  // namespace berth::cgroup
