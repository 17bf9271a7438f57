// SPDX-License-Identifier: Apache-2.0
#include "cgroup/directory.h"

#include <algorithm>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>

namespace berth::cgroup {

std::vector<std::string> subdirectories(DIR* stream) {
  std::vector<std::string> names;
  while (const dirent* entry = readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    bool directory = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN) {
      struct stat status {};
      directory =
          fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
    }
    if (directory) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace berth::cgroup
