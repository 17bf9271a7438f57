// SPDX-License-Identifier: Apache-2.0
#include "os/safe_path.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <list>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::os {

namespace {

using model::Error;
using model::ErrorKind;

// As many as the kernel follows (path_resolution(7)).
constexpr int kMostLinks = 40;
constexpr std::size_t kLongestTarget = 4096;

bool is_trusted(uid_t owner) { return owner == 0 || owner == geteuid(); }

bool others_may_change(const struct stat& directory) {
  return !is_trusted(directory.st_uid) || (directory.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

FileDescriptor root() { return FileDescriptor(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)); }

// By the kernel's own data, so that no file server is asked; 0 with errno on failure.
std::uint64_t mount_of(const FileDescriptor& handle) {
  struct statx status {};
  const int r =
      statx(handle.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MNT_ID, &status);
  return r == 0 ? status.stx_mnt_id : 0;
}

// A handle of `name` itself, one component; invalid with errno on failure. openat2(2) could do all of this.
// But with RestrictSUIDSGID= systemd refuses it, because its filters cannot see its arguments.
FileDescriptor look_up(const FileDescriptor& directory, const std::string& name) {
  struct stat status {};
  if (!directory || fstat(directory.get(), &status) != 0) return {};
  FileDescriptor found(openat(directory.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found || !others_may_change(status)) return found;
  const auto own = mount_of(directory);
  const auto its = mount_of(found);
  if (own == 0 || its == 0) return {};
  if (own == its) return found;
  found = FileDescriptor();
  errno = EXDEV;
  return {};
}

Error lookup_error(int number, const std::string& name) {
  if (number == EXDEV) {
    return {ErrorKind::refused,
            fmt::format("what is mounted at \"{}\" is not entered: others may change the directory it is in",
                        name)};
  }
  return Error::from_errno(number, fmt::format("looking up \"{}\"", name));
}

model::Result<std::string> target_of(const FileDescriptor& link, const struct stat& status,
                                     const std::string& name) {
  if (!is_trusted(status.st_uid)) {
    return model::fail(
        ErrorKind::refused,
        fmt::format("the symbolic link \"{}\" on the way is not followed: it belongs to user {}", name,
                    status.st_uid));
  }
  std::array<char, kLongestTarget> target{};
  const auto size = readlinkat(link.get(), "", target.data(), target.size());
  if (size < 0) return model::fail(Error::from_errno(errno, fmt::format("reading the link \"{}\"", name)));
  return std::string(target.data(), static_cast<std::size_t>(size));
}

using Components = std::list<std::string>;

Components components_of(const std::filesystem::path& path) {
  Components components;
  for (const auto& part : path.relative_path()) {
    if (!part.empty() && part != ".") components.push_back(part.string());
  }
  return components;
}

}  // namespace

WayToFile walk_to(const std::filesystem::path& path) {
  WayToFile way{.directory = root(), .awaited = {}, .file = model::fail(ErrorKind::gone, "no path")};
  Components left = components_of(path);
  for (int links = 0; !left.empty();) {
    way.awaited = left.front();
    left.pop_front();
    FileDescriptor next = look_up(way.directory, way.awaited);
    struct stat status {};
    if (!next || fstat(next.get(), &status) != 0) {
      way.file = model::fail(lookup_error(errno, way.awaited));
      return way;
    }
    if (left.empty()) {
      way.file = std::move(next);
      return way;
    }
    if (S_ISDIR(status.st_mode)) {
      way.directory = std::move(next);
      continue;
    }
    if (!S_ISLNK(status.st_mode)) {
      way.file = model::fail(ErrorKind::gone, "a part of the path is no directory");
      return way;
    }
    auto target = target_of(next, status, way.awaited);
    if (target && ++links > kMostLinks) target = model::fail(Error::from_errno(ELOOP, "on the way"));
    if (!target) {
      way.file = model::fail(target.error());
      return way;
    }
    if (target->starts_with('/')) way.directory = root();
    left.splice(left.begin(), components_of(*target));
  }
  return way;
}

}  // namespace berth::os
