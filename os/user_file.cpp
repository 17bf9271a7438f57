// SPDX-License-Identifier: Apache-2.0
#include "os/user_file.h"

#include "os/mounts.h"
#include "os/safe_path.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

namespace berth::os {

namespace {

using model::ErrorKind;

constexpr std::array kLocal{"bcachefs", "btrfs", "ext2",  "ext3", "ext4", "f2fs",
                            "overlay",  "ramfs", "tmpfs", "vfat", "xfs",  "zfs"};

// The type of the file system by mountinfo, which asks no file system.
std::string file_system_of(const std::filesystem::path& path) {
  const auto mounts = read_mounts("/proc");
  const Mount* mount = mounts ? mount_of(*mounts, path.string()) : nullptr;
  return mount == nullptr || !mounts->complete ? "unknown" : mount->type;
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
  if (S_ISLNK(status.st_mode)) {
    return model::fail(ErrorKind::refused, normal.string() +
                                               " is a symbolic link, which is not followed; "
                                               "name the file that it leads to");
  }
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    return model::fail(ErrorKind::refused, normal.string() + " is neither a regular file nor a directory");
  }
  FileDescriptor file(open(fmt::format("/proc/self/fd/{}", way.file->get()).c_str(),
                           O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file) return model::fail(model::Error::from_errno(errno, "opening " + normal.string()));
  return file;
}

}  // namespace berth::os
