// SPDX-License-Identifier: Apache-2.0
#include "os/safe_path.h"

#include "os/mounts.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <list>
#include <string>
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

// File systems that this host keeps itself.
constexpr std::array kLocal{"bcachefs", "btrfs", "devtmpfs", "ext2", "ext3", "ext4", "f2fs",
                            "overlay",  "ramfs", "tmpfs",    "vfat", "xfs",  "zfs"};

struct Place {
  FileDescriptor handle;  // O_PATH
  uid_t owner = 0;
  mode_t mode = 0;
  std::uint64_t mount = 0;
};

bool others_may_change(const Place& directory) {
  return !is_trusted(directory.owner) || (directory.mode & (S_IWGRP | S_IWOTH)) != 0;
}

// By the kernel's own data, so that no file server is asked.
model::Result<Place> look_at(FileDescriptor handle, const std::string& name) {
  constexpr unsigned kWanted = STATX_TYPE | STATX_MODE | STATX_UID | STATX_MNT_ID;
  struct statx status {};
  if (!handle || statx(handle.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, kWanted, &status) != 0)
    return model::fail(Error::from_errno(errno, fmt::format("looking up \"{}\"", name)));
  if ((status.stx_mask & STATX_MNT_ID) == 0)
    return model::fail(ErrorKind::unavailable, "the kernel does not tell mounts apart (Linux 5.8)");
  return Place{std::move(handle), status.stx_uid, status.stx_mode, status.stx_mnt_id};
}

model::Result<Place> root() {
  return look_at(FileDescriptor(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)), "/");
}

// `found` is on another mount than the directory it was looked up in, and not on that of "/". Without "/",
// berthd itself cannot run.
model::Result<void> check_mount(const Place& found, const std::string& name) {
  thread_local MountTypes types;
  const std::string type = types.type_of(found.mount);
  if (std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end()) return {};
  return model::fail(
      ErrorKind::refused,
      fmt::format("what is mounted at \"{}\" is not entered: it is a file system that may hang ({})", name,
                  type.empty() ? "unknown" : type));
}

// Looks up one component. It is opened with O_PATH, which asks no file server, so its mount is compared
// before anything is asked. openat2(2) could do a part of this. But with RestrictSUIDSGID= systemd refuses
// it, because its filters cannot see its arguments.
model::Result<Place> look_up(const Place& directory, const std::string& name, std::uint64_t root_mount) {
  auto found = look_at(
      FileDescriptor(openat(directory.handle.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)), name);
  if (!found || found->mount == directory.mount) return found;
  if (others_may_change(directory)) {
    return model::fail(
        ErrorKind::refused,
        fmt::format("what is mounted at \"{}\" is not entered: others may change the directory it is in",
                    name));
  }
  if (found->mount == root_mount) return found;
  if (auto checked = check_mount(*found, name); !checked) return model::fail(checked.error());
  return found;
}

model::Result<std::string> target_of(const Place& link, const std::string& name) {
  if (!is_trusted(link.owner)) {
    return model::fail(
        ErrorKind::refused,
        fmt::format("the symbolic link \"{}\" on the way is not followed: it belongs to user {}", name,
                    link.owner));
  }
  std::array<char, kLongestTarget> target{};
  const auto size = readlinkat(link.handle.get(), "", target.data(), target.size());
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
  WayToFile way{.directory = {}, .awaited = {}, .file = model::fail(ErrorKind::gone, "no path")};
  auto top = root();
  if (!top) {
    way.file = model::fail(top.error());
    return way;
  }
  const std::uint64_t root_mount = top->mount;
  Place directory = *std::move(top);
  const auto end = [&](model::Result<FileDescriptor> file) {
    way.directory = std::move(directory.handle);
    way.file = std::move(file);
    return std::move(way);
  };
  Components left = components_of(path);
  for (int links = 0; !left.empty();) {
    way.awaited = left.front();
    left.pop_front();
    auto next = look_up(directory, way.awaited, root_mount);
    if (!next) return end(model::fail(next.error()));
    if (left.empty()) return end(std::move(next->handle));
    if (S_ISDIR(next->mode)) {
      directory = *std::move(next);
      continue;
    }
    if (!S_ISLNK(next->mode)) return end(model::fail(ErrorKind::gone, "a part of the path is no directory"));
    auto target = target_of(*next, way.awaited);
    if (target && ++links > kMostLinks) target = model::fail(Error::from_errno(ELOOP, "on the way"));
    if (!target) return end(model::fail(target.error()));
    if (target->starts_with('/')) {
      auto again = root();
      if (!again) return end(model::fail(again.error()));
      directory = *std::move(again);
    }
    left.splice(left.begin(), components_of(*target));
  }
  return end(std::move(way.file));
}

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
