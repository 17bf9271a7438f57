// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/writer.h"
#include "model/error.h"

#include <filesystem>

namespace berth::cgroup {

// The places where a host keeps the data of a restore.
struct RestorePaths {
  std::filesystem::path cgroup_root;  // the v2 tree
  std::filesystem::path proc_root = "/proc";
  std::filesystem::path sys_root = "/sys";
  std::filesystem::path systemd_run_dir = "/run/systemd";
  std::filesystem::path irqbalance_dir = os::Irqbalance::kDirectory;
  std::filesystem::path runtime_dir = "/run/berth";  // the undo journal, and the lock (cgroup/host_lock.h)
};

// Puts back everything in the undo journal, and the processes of every leaf (cgroup/leaf.h), without a
// daemon. Error where the journal cannot be opened; the leaves are put back all the same. Error refused, and
// nothing done, where another berthd has the lock of this host, or holds the journal. A lock that cannot be
// taken for another reason keeps nothing from being put back. While systemd cannot be reached, a unit's
// record stays and is reported as left.
model::Result<RestoreReport> restore_host(const RestorePaths& paths);

}  // namespace berth::cgroup
