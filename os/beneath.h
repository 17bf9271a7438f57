// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/file_descriptor.h"

#include <filesystem>
#include <string_view>

namespace berth::os {

// A user may own directories below a cgroup root, and mount a file system of its own on them (FUSE). Such a
// file system may never answer, and may show anything. So these functions enter nothing that is mounted below
// their starting point, follow no symbolic link there, and ask no file system on the way anything.
//
// Invalid with errno on failure: EXDEV at a mount, ENOTDIR at a link.

// Opens the directory `path` below `root`, for reading; "" is the root itself, which may be reached through
// links. EINVAL where `path` has "..".
FileDescriptor open_beneath(const std::filesystem::path& root, std::string_view path);

// Opens a subdirectory of an open directory, for reading.
FileDescriptor open_child(int directory, const char* name);

}  // namespace berth::os
