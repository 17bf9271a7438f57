// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dirent.h>

namespace berth::cgroup {

struct CloseDirectory {
  void operator()(DIR* stream) const { closedir(stream); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// The names of its subdirectories, ascending; symbolic links are none.
std::vector<std::string> subdirectories(DIR* stream);

}  // namespace berth::cgroup
