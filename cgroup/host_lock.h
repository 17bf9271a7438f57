// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/lock_file.h"

#include <filesystem>

namespace berth::cgroup {

// The lock of this host. Only one berthd may change the host, with any directories: one that runs, or
// `berthd --restore`.
inline constexpr const char* kHostLock = "/run/berth/berthd.lock";

// Takes the lock that belongs to the tree at `cgroup_root`. For a tree of this kernel that is kHostLock. A
// tree of ordinary files, as tests have, is locked in `runtime_dir`. The directory is made where it is
// missing. Error refused where another process has the lock; the message names it and says what to do.
model::Result<os::LockFile> lock_host(const std::filesystem::path& cgroup_root,
                                      const std::filesystem::path& runtime_dir);

}  // namespace berth::cgroup
