// SPDX-License-Identifier: Apache-2.0
#include "daemon/user_file.h"

#include "daemon/progress_path.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

namespace berth::daemon {

namespace {

using cgroup::FileDescriptor;
using model::ErrorKind;

constexpr std::array kLocal{"bcachefs", "btrfs", "ext2",  "ext3", "ext4", "f2fs",
                            "overlay",  "ramfs", "tmpfs", "vfat", "xfs",  "zfs"};

bool is_below(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

// Of the innermost mount that the path names, by /proc/self/mountinfo (proc(5)), which asks no file system.
// Blanks in a mount point are escaped there; what is mounted at such a one counts as what is around it, and
// only root mounts there, or a user where walk_to() does not go.
std::string file_system_of(const std::filesystem::path& path) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string innermost;
  std::string type;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string point;
    for (int i = 0; i < 5; ++i) fields >> point;
    // Of two mounts at one place the later one covers the other.
    if (!is_below(path.string(), point) || point.size() < innermost.size()) continue;
    std::string field;
    while (fields >> field && field != "-") continue;
    fields >> type;
    innermost = point;
  }
  return type;
}

}  // namespace

model::Result<FileDescriptor> open_user_file(const std::filesystem::path& path) {
  const auto normal = path.lexically_normal();
  const std::string type = file_system_of(normal);
  if (std::find(kLocal.begin(), kLocal.end(), type) == kLocal.end()) {
    return model::fail(ErrorKind::refused,
                       fmt::format("{} is on a file system that may hang ({})", normal.string(), type));
  }
  const auto way = walk_to(normal);
  if (!way.file) return model::fail(way.file.error().context(normal.string()));
  struct stat status {};
  if (fstat(way.file->get(), &status) != 0)
    return model::fail(model::Error::from_errno(errno, "looking at " + normal.string()));
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    return model::fail(ErrorKind::refused, normal.string() + " is neither a regular file nor a directory");
  }
  FileDescriptor file(open(fmt::format("/proc/self/fd/{}", way.file->get()).c_str(),
                           O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file) return model::fail(model::Error::from_errno(errno, "opening " + normal.string()));
  return file;
}

}  // namespace berth::daemon
