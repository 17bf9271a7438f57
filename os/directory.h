// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/file_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dirent.h>

namespace berth::os {

struct CloseDirectory {
  void operator()(DIR* stream) const { closedir(stream); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// A stream of an open directory, with an offset of its own. Null where errno says why.
DirectoryStream stream_of(int directory);
// A stream of the directory itself, for a descriptor that came from a process with more rights.
DirectoryStream stream_of(FileDescriptor directory);

// The names of an open directory's subdirectories, ascending; symbolic links are none. Where there are more
// than `most`, so many of them, in no particular choice. nullopt where errno says why.
std::optional<std::vector<std::string>> subdirectories(int directory, std::size_t most = SIZE_MAX);

}  // namespace berth::os
