// SPDX-License-Identifier: Apache-2.0
#include "os/directory.h"

#include "os/file_descriptor.h"

#include <algorithm>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>

namespace berth::os {

DirectoryStream stream_of(int directory) {
  FileDescriptor copy(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DirectoryStream stream(copy ? fdopendir(copy.get()) : nullptr);
  if (stream) (void)copy.release();
  return stream;
}

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

}  // namespace berth::os
