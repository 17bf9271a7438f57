// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/file_descriptor.h"
#include "model/error.h"

#include <filesystem>
#include <string>

namespace berth::daemon {

// How far the way to a file goes.
struct WayToFile {
  cgroup::FileDescriptor directory;  // O_PATH: the deepest one on the way that is there
  std::string awaited;               // what was looked up in it last
  // O_PATH handle of whatever has the file's name, a symbolic link itself and not what it points to. Error
  // gone where it or a directory on the way is not there.
  model::Result<cgroup::FileDescriptor> file;
};

// Walks to the absolute `path`. Whoever may write a progress file may often change directories on the way to
// it, and must not send berthd elsewhere, least of all to a file system that hangs. So a symbolic link is
// followed only if it belongs to root or to berthd's own user (as /var/run does), and in a directory that
// others may change (their own, or one that its group or everybody may write) nothing is entered that is
// mounted there. Nothing is opened but handles, and no automount is triggered.
WayToFile walk_to(const std::filesystem::path& path);

}  // namespace berth::daemon
