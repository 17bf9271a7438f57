// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"
#include "os/lock_file.h"

#include <filesystem>

namespace berth::cgroup {

// The lock of this host. Only one berthd may change the host, with any directories: one that runs, or
// `berthd --restore`.
inline constexpr const char* kHostLock = "/run/berth/berthd.lock";
// A file of the tree's root that is locked, too. A privileged container has a /run of its own, but the same
// tree. Only root can open this file of the root cgroup, and berth writes nothing into it (Linux 5.19 and
// later).
inline constexpr const char* kTreeLock = "memory.reclaim";

struct HostLock {
  os::LockFile file;
  os::FileDescriptor tree;  // invalid where the file is missing or cannot be opened
};

// Takes the lock that belongs to the tree at `cgroup_root`. For a tree of this kernel that is kHostLock with
// kTreeLock. A tree of ordinary files, as tests have, is locked in `runtime_dir`. The directory is made where
// it is missing. Error refused where another process has the lock; the message names it and says what to do.
model::Result<HostLock> lock_host(const std::filesystem::path& cgroup_root,
                                  const std::filesystem::path& runtime_dir);

}  // namespace berth::cgroup
