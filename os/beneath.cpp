// SPDX-License-Identifier: Apache-2.0
#include "os/beneath.h"

#include <cerrno>
#include <cstdint>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>

namespace berth::os {

namespace {

FileDescriptor open_retrying(int directory, const char* name, int flags) {
  int fd = -1;
  do {
    fd = openat(directory, name, flags | O_DIRECTORY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return FileDescriptor(fd);
}

// By the kernel's own data, so that no file server is asked; 0 with errno on failure.
std::uint64_t mount_of(int handle) {
  struct statx status {};
  const int r = statx(handle, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, &status);
  return r == 0 ? status.stx_mnt_id : 0;
}

// A handle of a subdirectory, on the same mount.
FileDescriptor step_into(int directory, const char* name, std::uint64_t mount) {
  FileDescriptor next = open_retrying(directory, name, O_PATH | O_NOFOLLOW);
  if (!next) return {};
  const std::uint64_t its = mount_of(next.get());
  if (its == mount) return next;
  if (its != 0) errno = EXDEV;
  const int error = errno;
  next = FileDescriptor();
  errno = error;
  return {};
}

}  // namespace

// openat2(2) could do all of this. But with RestrictSUIDSGID= systemd refuses it, because its filters cannot
// see its arguments. So each component is opened as a handle (O_PATH), which asks no file system anything.
FileDescriptor open_beneath(const std::filesystem::path& root, std::string_view path) {
  if (path.empty()) return open_retrying(AT_FDCWD, root.c_str(), O_RDONLY);
  FileDescriptor directory = open_retrying(AT_FDCWD, root.c_str(), O_PATH);
  const std::uint64_t mount = directory ? mount_of(directory.get()) : 0;
  if (mount == 0) return {};
  for (std::string name; !path.empty();) {
    const std::size_t slash = path.find('/');
    name = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (name.empty() || name == "." || name == "..") {
      errno = EINVAL;
      return {};
    }
    directory = step_into(directory.get(), name.c_str(), mount);
    if (!directory) return {};
  }
  return open_retrying(directory.get(), ".", O_RDONLY);
}

FileDescriptor open_child(int directory, const char* name) {
  const std::uint64_t mount = mount_of(directory);
  const FileDescriptor child = mount != 0 ? step_into(directory, name, mount) : FileDescriptor();
  return child ? open_retrying(child.get(), ".", O_RDONLY) : FileDescriptor();
}

}  // namespace berth::os
