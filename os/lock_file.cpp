// SPDX-License-Identifier: Apache-2.0
#include "os/lock_file.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

namespace berth::os {

namespace {

// "PID TEXT", of the present or the last holder.
std::string read_content(int fd) {
  std::array<char, 128> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  std::string_view content(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return std::string(content.substr(0, content.find('\n')));
}

std::string pid_of_holder(const std::string& content) {
  const std::string pid = content.substr(0, content.find(' '));
  const bool is_number = !pid.empty() && pid.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? pid : "not known";
}

}  // namespace

std::string text_of_holder(std::string_view content) {
  const auto space = content.find(' ');
  return space == std::string_view::npos ? std::string() : std::string(content.substr(space + 1));
}

model::Result<LockFile> take_lock(const std::filesystem::path& file, std::string_view what,
                                  std::string_view text) {
  const auto failed = [&](int number, const char* doing) {
    return model::fail(
        model::Error::from_errno(number, fmt::format("{}: {} {}", what, doing, file.string())));
  };
  FileDescriptor fd(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return failed(errno, "opening");
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed(errno, "locking");
    return model::fail(
        model::ErrorKind::refused,
        fmt::format("{} is held by another berthd (pid {}, {}); only one may change this host: stop that one "
                    "first (systemctl stop berthd.service), or wait until it has ended",
                    what, pid_of_holder(read_content(fd.get())), file.string()));
  }
  LockFile lock{std::move(fd), {}};
  lock.before = read_content(lock.fd.get());
  // Written over the old text, then cut, so that a full file system does not destroy the old text.
  const std::string holder = fmt::format("{} {}\n", getpid(), text);
  errno = 0;
  if (pwrite(lock.fd.get(), holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size()) ||
      ftruncate(lock.fd.get(), static_cast<off_t>(holder.size())) != 0) {
    return failed(errno == 0 ? ENOSPC : errno, "writing");
  }
  return lock;
}

}  // namespace berth::os
