// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace berth::cgroup {

// One control group: an open directory and the id that the kernel gave it. So a new group at the same path is
// never mistaken for it.
class Cgroup : public std::enable_shared_from_this<Cgroup> {
 public:
  // `path` is relative to `root`, without a leading slash; "" is the root itself. Error gone where there is
  // no such group. Error invalid_input for a path that is absolute or holds an empty, "." or ".." component.
  static model::Result<std::shared_ptr<Cgroup>> open(const std::filesystem::path& root,
                                                     const std::string& path);

  // The group that contains this one. Error gone where this one is not at its path any more.
  model::Result<std::shared_ptr<Cgroup>> above() const;

  const std::string& path() const { return path_; }
  // The directory that the path is relative to.
  const std::string& root() const { return root_; }
  // kernfs id: the directory's inode number.
  std::uint64_t id() const { return id_; }
  int fd() const { return fd_.get(); }

  // Whole content of a control file. Error gone where group or file vanished.
  model::Result<std::string> read(const std::string& file) const;
  // The beginning of a file, in `buffer`; nullopt, with errno, where it cannot be read. It allocates nothing,
  // for files that are read often or may be missing. A file that fills the buffer may be longer.
  std::optional<std::string_view> peek(const char* file, std::span<char> buffer) const;
  // One write(2) of `value`. Empty text is written as a line break, as an empty write would not reach the
  // kernel's handler. Error as the kernel's; EINTR is retried. Never creates a file.
  model::Result<void> write(const std::string& file, std::string_view value) const;
  bool has(const std::string& file) const;
  // Whether only root, or the user that runs this program, may write the file. systemd makes that of a unit
  // which has none yet, so a missing one counts.
  bool is_roots(const char* file) const;
  // True where the path still leads to this very group.
  bool is_current() const;

 private:
  Cgroup(std::string root, std::string path, os::FileDescriptor fd, std::uint64_t id);

  std::string root_;  // a path object would hold each of its components as well
  std::string path_;
  os::FileDescriptor fd_;
  std::uint64_t id_ = 0;
};

}  // namespace berth::cgroup
