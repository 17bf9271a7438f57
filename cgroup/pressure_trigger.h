// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "os/file_descriptor.h"

#include <cstdint>
#include <utility>

namespace berth::cgroup {

// The condition for a report of the kernel that tasks stall (Documentation/accounting/psi.rst, "Monitoring
// for pressure thresholds").
struct PressureThreshold {
  enum class Kind { some, full };  // some or all of the tasks that are not idle
  Kind kind = Kind::some;
  std::uint32_t stall_usec = 0;           // summed stall within the window that fires
  std::uint32_t window_usec = 1'000'000;  // 500 ms to 10 s

  friend bool operator==(const PressureThreshold&, const PressureThreshold&) = default;
};

// A PSI trigger. The kernel reports that pressure is past a threshold, again every window or two while it
// stays there. Each trigger costs a descriptor and, where the caller is privileged, a kernel thread.
class PressureTrigger {
 public:
  // Arms `file` (cpu.pressure, memory.pressure, ...) of the directory `directory_fd`. Kernels since 6.5 take
  // a window that is no multiple of 2 s from CAP_SYS_RESOURCE only. Without it the window is 2 s. Error as
  // the kernel's; unavailable where the file is an ordinary one, which is left unchanged.
  static model::Result<PressureTrigger> arm(int directory_fd, const char* file,
                                            const PressureThreshold& threshold);

  // EPOLLPRI when pressure is past the threshold, EPOLLERR when the group is gone. Polling consumes the
  // event. So put this into the set that is waited on, not into an epoll set within another.
  int fd() const { return fd_.get(); }
  // Call it for each event, with the monotonic time in nanoseconds. Returns whether the pressure is new,
  // rather than still there.
  bool rose(std::int64_t now_ns);

 private:
  PressureTrigger(os::FileDescriptor fd, std::int64_t window_ns)
      : fd_(std::move(fd)), window_ns_(window_ns) {}

  os::FileDescriptor fd_;
  std::int64_t window_ns_;
  std::int64_t last_event_ns_ = 0;  // 0: none yet
};

}  // namespace berth::cgroup
