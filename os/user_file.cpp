// SPDX-License-Identifier: Apache-2.0
#include "os/user_file.h"

#include "os/safe_path.h"

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

namespace berth::os {

using model::ErrorKind;

model::Result<FileDescriptor> open_user_file(const std::filesystem::path& path) {
  const auto normal = path.lexically_normal();
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
