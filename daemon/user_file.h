// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/file_descriptor.h"
#include "model/error.h"

#include <filesystem>

namespace berth::daemon {

// Opens for reading the file or directory at an absolute path that some user chose. By walk_to(), and only
// where the path lies on a file system that this host keeps itself: a server of files may never answer. Never
// opens a device, FIFO or socket. Error `gone` where nothing is there, `refused` for the rest.
model::Result<cgroup::FileDescriptor> open_user_file(const std::filesystem::path& path);

}  // namespace berth::daemon
