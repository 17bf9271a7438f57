// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"

#include <filesystem>

namespace berth::os {

// Opens for reading the file or directory at an absolute path that any user may have chosen. It goes by
// walk_to(), so only to file systems that this host keeps itself. Never opens a device, FIFO or socket. Error
// `gone` where nothing is there, `refused` for the rest.
model::Result<FileDescriptor> open_user_file(const std::filesystem::path& path);

}  // namespace berth::os
