// SPDX-License-Identifier: Apache-2.0
#include "os/lock_file.h"

#include "os/log.h"
#include "os/proc_files.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
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

FileDescriptor open_lock(const std::filesystem::path& file, int flags) {
  return FileDescriptor(open(file.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
}

// Only one process at a time takes the lock. This lock is another one than that of flock(2), and its holder
// is the descriptor. False with errno.
bool set_guard(const FileDescriptor& fd, short type) {
  struct flock all {};
  all.l_type = type;
  all.l_whence = SEEK_SET;
  return fcntl(fd.get(), F_OFD_SETLK, &all) == 0;
}

bool lock_now(const FileDescriptor& fd) { return flock(fd.get(), LOCK_EX | LOCK_NB) == 0; }

// A process that was killed usually ends at once.
bool lock_soon(const FileDescriptor& fd) {
  constexpr int kTries = 100;
  constexpr int kPause_ms = 10;
  for (int i = 0; i < kTries; ++i) {
    if (lock_now(fd)) return true;
    poll(nullptr, 0, kPause_ms);
  }
  return false;
}

bool is_at(const FileDescriptor& fd, const std::filesystem::path& file) {
  struct stat own {};
  struct stat there {};
  return fstat(fd.get(), &own) == 0 && stat(file.c_str(), &there) == 0 && own.st_dev == there.st_dev &&
         own.st_ino == there.st_ino;
}

// The process that holds the lock by the kernel's own list. The text in the file may be of an earlier holder.
// nullopt where none holds it, and where this process cannot see the holder, as from a container.
std::optional<pid_t> holder_of(const FileDescriptor& fd) {
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return std::nullopt;
  const auto wanted =
      fmt::format("{:02x}:{:02x}:{}", major(status.st_dev), minor(status.st_dev), status.st_ino);
  std::ifstream locks("/proc/locks");  // NUMBER: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, access, inode;
    pid_t pid = 0;
    if (!(words >> number >> kind >> advisory >> access >> pid >> inode)) continue;
    if (kind == "FLOCK" && inode == wanted) return pid;
  }
  return std::nullopt;
}

// The holder of the lock if it hangs for good.
std::optional<pid_t> hung_holder(const FileDescriptor& fd) {
  const auto holder = holder_of(fd);
  return holder && hangs_for_good(fmt::format("/proc/{}", *holder)) ? holder : std::nullopt;
}

// Written over the old text, then cut, so that a full file system does not destroy the old text.
bool write_content(const FileDescriptor& fd, const std::string& text) {
  errno = 0;
  return pwrite(fd.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
         ftruncate(fd.get(), static_cast<off_t>(text.size())) == 0;
}

// Puts another file, which this process has locked, in the place of `file`. Invalid with errno on failure.
FileDescriptor replace(const std::filesystem::path& file, const std::string& text) {
  const std::string staged = file.string() + ".new";
  unlink(staged.c_str());
  FileDescriptor fd = open_lock(staged, O_RDWR | O_CREAT | O_EXCL);
  if (!fd || !lock_now(fd) || !write_content(fd, text) || rename(staged.c_str(), file.c_str()) != 0)
    return {};
  return fd;
}

model::Error refusal(std::string_view what, const std::string& pid, const std::filesystem::path& file) {
  return {
      model::ErrorKind::refused,
      fmt::format("{} is held by another berthd (pid {}, {}); only one may change this host: stop that one "
                  "first (systemctl stop berthd.service), or wait until it has ended",
                  what, pid, file.string())};
}

}  // namespace

std::string text_of_holder(std::string_view content) {
  const auto space = content.find(' ');
  return space == std::string_view::npos ? std::string() : std::string(content.substr(space + 1));
}

model::Result<LockFile> take_lock(const std::filesystem::path& file, std::string_view what,
                                  std::string_view text) {
  const auto failed = [&](const char* doing, int number = errno) {
    return model::fail(
        model::Error::from_errno(number, fmt::format("{}: {} {}", what, doing, file.string())));
  };
  const auto refused = [&](const FileDescriptor& fd) {
    return model::fail(refusal(what, pid_of_holder(read_content(fd.get())), file));
  };
  const std::string holder = fmt::format("{} {}\n", getpid(), text);
  FileDescriptor fd;
  do {
    fd = open_lock(file, O_RDWR | O_CREAT);
    if (!fd) return failed("opening");
    if (!set_guard(fd, F_WRLCK)) return errno == EAGAIN || errno == EACCES ? refused(fd) : failed("locking");
  } while (!is_at(fd, file));
  LockFile lock;
  if (!lock_now(fd)) {
    if (errno != EWOULDBLOCK) return failed("locking");
    const auto hung = hung_holder(fd);
    if (!hung) return refused(fd);
    if (!lock_soon(fd)) {
      // It may have ended, and another one may have come.
      if (hung_holder(fd) != hung) return refused(fd);
      FileDescriptor heir = replace(file, holder);
      if (!heir) return failed("replacing", errno == 0 ? ENOSPC : errno);
      log_warning("{}: berthd with pid {} was killed and hangs in the kernel; its lock is taken over", what,
                  *hung);
      return LockFile{std::move(heir), read_content(fd.get())};
    }
  }
  lock.fd = std::move(fd);
  lock.before = read_content(lock.fd.get());
  if (!write_content(lock.fd, holder)) return failed("writing", errno == 0 ? ENOSPC : errno);
  if (!set_guard(lock.fd, F_UNLCK)) return failed("unlocking");
  return lock;
}

model::Result<FileDescriptor> lock_in_place(const std::filesystem::path& file, std::string_view what) {
  FileDescriptor fd = open_lock(file, O_WRONLY);
  if (!fd && errno == ENOENT) return fd;
  if (!fd)
    return model::fail(model::Error::from_errno(errno, fmt::format("{}: opening {}", what, file.string())));
  if (lock_now(fd)) return fd;
  if (errno != EWOULDBLOCK)
    return model::fail(model::Error::from_errno(errno, fmt::format("{}: locking {}", what, file.string())));
  const auto hung = hung_holder(fd);
  if (hung && lock_soon(fd)) return fd;
  if (hung && hung_holder(fd) == hung) return FileDescriptor();
  const auto holder = holder_of(fd);
  return model::fail(refusal(what, holder ? std::to_string(*holder) : "not seen from here", file));
}

}  // namespace berth::os
