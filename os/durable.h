// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <filesystem>

namespace berth::os {

// Writes the open file, and its name in its directory, to the disk (fsync(2)). It may take as long as the
// disk does, seconds under load, so the event loop does not call it. Error of the system, naming the file.
model::Result<void> sync_to_disk(int fd, const std::filesystem::path& file);
// The name alone, as after rename(2).
model::Result<void> sync_directory_of(const std::filesystem::path& file);

}  // namespace berth::os
