// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace berth::cgroup {

// One inotify instance (inotify(7)). Watches are put on open directories, not on paths. So a watch is always
// on the group that was looked at.
class Watcher {
 public:
  static model::Result<Watcher> create();

  int fd() const { return fd_.get(); }

  // Watches for children made and removed, and attributes set. Returns the watch's number; -errno where
  // refused (-ENOSPC: no more watches).
  int watch_directory(int directory) const;
  // Writes to `file` in the directory, and the kernel's own notifications for it (cgroup.events).
  int watch_file(int directory, const char* file) const;
  // Call it also when a group was removed: cgroupfs does not end the watch then.
  void remove(int watch) const;

  struct Event {
    int watch = -1;  // -1 for an overflow
    std::uint32_t mask = 0;
    std::string_view name;  // empty where it is about the watched thing itself
    bool overflow() const;
    bool ended() const;  // the watch does not exist any more
    bool is_directory() const;
    bool is_attributes() const;
    bool is_modification() const;
  };
  // Passes on pending events, 256 KiB at most. The rest keeps fd() readable.
  void read(const std::function<void(const Event&)>& handle) const;

 private:
  explicit Watcher(os::FileDescriptor fd) : fd_(std::move(fd)) {}
  os::FileDescriptor fd_;
};

}  // namespace berth::cgroup
