// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/file_descriptor.h"
#include "model/error.h"

#include <cstdint>
#include <utility>

namespace berth::cgroup {

// When the kernel is to say that tasks stall (Documentation/accounting/psi.rst, "Monitoring for pressure
// thresholds").
struct PressureThreshold {
  enum class Kind { some, full };  // some or all of the tasks that are not idle
  Kind kind = Kind::some;
  std::uint32_t stall_usec = 0;           // summed stall within the window that fires
  std::uint32_t window_usec = 1'000'000;  // 500 ms to 10 s
};

// A PSI trigger: the kernel says when pressure is past a threshold, again every window or two while it stays
// there. Each costs a descriptor and, where the caller is privileged, a kernel thread.
class PressureTrigger {
 public:
  // Arms `file` (cpu.pressure, memory.pressure, ...) of the directory `directory_fd`. Kernels since 6.5 take
  // a window that is no multiple of 2 s from CAP_SYS_RESOURCE only: then the window is 2 s. Error as the
  // kernel's; unavailable where the file is not the kernel's, which is left as it is.
  static model::Result<PressureTrigger> arm(int directory_fd, const char* file,
                                            const PressureThreshold& threshold);

  // EPOLLPRI when pressure is past the threshold, EPOLLERR when the group is gone. Being polled takes the
  // event back: this has to be in the set that is waited on, not in an epoll set within another.
  int fd() const { return fd_.get(); }
  // To be called for each event, with the monotonic time in nanoseconds: whether the pressure is new, rather
  // than still there.
  bool rose(std::int64_t now_ns);

 private:
  PressureTrigger(FileDescriptor fd, std::int64_t window_ns) : fd_(std::move(fd)), window_ns_(window_ns) {}

  FileDescriptor fd_;
  std::int64_t window_ns_;
  std::int64_t last_event_ns_ = 0;  // 0: none yet
};

}  // namespace berth::cgroup
