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

DirectoryStream stream_of(FileDescriptor directory) {
  DirectoryStream stream(fdopendir(directory.get()));
  if (stream) (void)directory.release();
  return stream;
}

std::optional<std::vector<std::string>> subdirectories(int directory, std::size_t most) {
  std::vector<std::string> names;
  // Each subdirectory links to its parent. Most cgroups have none, and a list of all their control files
  // costs as much as the rest of the look. File systems that count no links say 1.
  struct stat links {};
  if (fstat(directory, &links) == 0 && links.st_nlink == 2) return names;
  const DirectoryStream stream = stream_of(directory);
  if (!stream) return std::nullopt;
  while (names.size() < most) {
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    bool is_one = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN) {
      struct stat status {};
      is_one =
          fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
    }
    if (is_one) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace berth::os
