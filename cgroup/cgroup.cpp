// SPDX-License-Identifier: Apache-2.0
#include "cgroup/cgroup.h"

#include "model/path.h"
#include "os/beneath.h"
#include "os/read_file.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

// cgroup.procs is the largest control file: a line of some 8 bytes a process.
constexpr std::size_t kLargestFile = std::size_t{64} << 20;

// Components that would lead out of the tree, or are not names at all.
bool is_safe(std::string_view path) {
  if (path.empty()) return true;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = path.find('/', begin);
    const std::string_view name = path.substr(begin, end == std::string_view::npos ? end : end - begin);
    if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string_view::npos)
      return false;
    if (end == std::string_view::npos) return true;
    begin = end + 1;
  }
}

bool is_file_name(std::string_view file) {
  return !file.empty() && is_safe(file) && file.find('/') == std::string_view::npos;
}

int open_retrying(int directory, const char* name, int flags) {
  int fd = -1;
  do {
    fd = openat(directory, name, flags | O_CLOEXEC | O_NOFOLLOW);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace

Cgroup::Cgroup(std::string root, std::string path, os::FileDescriptor fd, std::uint64_t id)
    : root_(std::move(root)), path_(std::move(path)), fd_(std::move(fd)), id_(id) {}

model::Result<std::shared_ptr<Cgroup>> Cgroup::open(const std::filesystem::path& root,
                                                    const std::string& path) {
  if (!is_safe(path)) {
    return model::fail(model::ErrorKind::invalid_input,
                       fmt::format("cgroup \"{}\": not a path below the cgroup root", path));
  }
  const auto full = [&] { return (path.empty() ? root : root / path).string(); };
  os::FileDescriptor fd = os::open_beneath(root, path);
  if (!fd && errno == EXDEV) {
    return model::fail(model::Error::from_errno(
        EXDEV, fmt::format("opening cgroup {}: another file system is mounted there", full())));
  }
  if (!fd) return model::fail(model::Error::from_errno(errno, "opening cgroup " + full()));
  struct stat status {};
  if (fstat(fd.get(), &status) != 0)
    return model::fail(model::Error::from_errno(errno, "reading the id of cgroup " + full()));
  return std::shared_ptr<Cgroup>(new Cgroup(root.string(), path, std::move(fd), status.st_ino));
}

model::Result<std::shared_ptr<Cgroup>> Cgroup::above() const {
  auto group = open(root_, std::string(model::parent_path(path_)));
  // Looked at afterwards: so the group that was opened contains this one.
  if (group && !is_current())
    return model::fail(model::ErrorKind::gone, fmt::format("cgroup \"{}\" is gone", path_));
  return group;
}

model::Result<std::string> Cgroup::read(const std::string& file) const {
  const auto what = [&] { return fmt::format("reading {} of cgroup \"{}\"", file, path_); };
  if (!is_file_name(file)) return model::fail(model::Error::from_errno(EINVAL, what()));
  const os::FileDescriptor fd(open_retrying(fd_.get(), file.c_str(), O_RDONLY));
  if (!fd) return model::fail(model::Error::from_errno(errno, what()));
  std::string content;
  if (!os::read_up_to(fd.get(), kLargestFile, content))
    return model::fail(model::Error::from_errno(errno, what()));
  return content;
}

std::optional<std::string_view> Cgroup::peek(const char* file, std::span<char> buffer) const {
  if (!is_file_name(file)) {
    errno = EINVAL;
    return std::nullopt;
  }
  const os::FileDescriptor fd(open_retrying(fd_.get(), file, O_RDONLY));
  if (!fd) return std::nullopt;
  const ssize_t size = os::read_retrying(fd.get(), buffer.data(), buffer.size());
  if (size < 0) return std::nullopt;
  return std::string_view(buffer.data(), static_cast<std::size_t>(size));
}

model::Result<void> Cgroup::write(const std::string& file, std::string_view value) const {
  const auto what = [&] { return fmt::format("writing \"{}\" to {} of cgroup \"{}\"", value, file, path_); };
  if (!is_file_name(file)) return model::fail(model::Error::from_errno(EINVAL, what()));
  // cgroupfs ignores O_TRUNC; in an ordinary directory it keeps a longer old value from showing behind a
  // shorter one.
  const os::FileDescriptor fd(open_retrying(fd_.get(), file.c_str(), O_WRONLY | O_TRUNC));
  if (!fd) return model::fail(model::Error::from_errno(errno, what()));
  const std::string_view bytes = value.empty() ? std::string_view("\n") : value;
  ssize_t written = -1;
  do {
    written = ::write(fd.get(), bytes.data(), bytes.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return model::fail(model::Error::from_errno(errno, what()));
  if (static_cast<std::size_t>(written) != bytes.size()) {
    return model::fail(model::ErrorKind::io,
                       fmt::format("{}: only {} of {} bytes were taken", what(), written, bytes.size()));
  }
  return {};
}

bool Cgroup::has(const std::string& file) const {
  return is_file_name(file) && faccessat(fd_.get(), file.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool Cgroup::is_roots(const char* file) const {
  struct stat status {};
  if (fstatat(fd_.get(), file, &status, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
  const bool others_may_write =
      (status.st_mode & S_IWOTH) ||
      ((status.st_mode & S_IWGRP) && status.st_gid != 0 && status.st_gid != getegid());
  return (status.st_uid == 0 || status.st_uid == geteuid()) && !others_may_write;
}

bool Cgroup::is_current() const {
  const os::FileDescriptor fd = os::open_beneath(root_, path_);
  struct stat status {};
  return fd && fstat(fd.get(), &status) == 0 && status.st_ino == id_;
}

}  // namespace berth::cgroup
