// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/file_descriptor.h"
#include "model/error.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace berth::cgroup {

// One inotify instance (inotify(7)). Watches are put on open directories, not on paths, so that a watch and
// the group that was looked at are the same.
class Watcher {
 public:
  static model::Result<Watcher> create();

  int fd() const { return fd_.get(); }

  // Children made and removed, attributes set. The watch's number; -errno where refused (-ENOSPC: no more
  // watches).
  int watch_directory(int directory) const;
  // Writes to `file` in the directory, and the kernel's own notifications for it (cgroup.events).
  int watch_file(int directory, const char* file) const;
  // cgroupfs does not end a watch when its group is removed, so this must be called then too.
  void remove(int watch) const;

  struct Event {
    int watch = -1;  // -1 for an overflow
    std::uint32_t mask = 0;
    std::string_view name;  // empty where it is about the watched thing itself
    bool overflow() const;
    bool ended() const;  // the watch is no more
    bool is_directory() const;
    bool is_attributes() const;
    bool is_modification() const;
  };
  // Hands over what is pending, at most about 4 MiB of it; what remains keeps fd() readable.
  void read(const std::function<void(const Event&)>& handle) const;

 private:
  explicit Watcher(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace berth::cgroup
