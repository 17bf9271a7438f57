// SPDX-License-Identifier: Apache-2.0
#include "cgroup/pressure_trigger.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/vfs.h>

namespace berth::cgroup {

namespace {

constexpr std::uint32_t kUnprivilegedWindowUsec = 2'000'000;
// Events of pressure that lasts were seen up to two windows apart.
constexpr std::int64_t kQuietWindows = 3;

// An ordinary file would be overwritten by text that is meant for the kernel.
bool is_kernels(int fd) {
  struct statfs file_system {};
  return fstatfs(fd, &file_system) == 0 &&
         (file_system.f_type == CGROUP2_SUPER_MAGIC || file_system.f_type == PROC_SUPER_MAGIC);
}

// Whether the kernel took the trigger; errno says why not. It wants the final NUL.
bool write_trigger(int fd, const PressureThreshold& threshold) {
  const auto text = fmt::format("{} {} {}", threshold.kind == PressureThreshold::Kind::some ? "some" : "full",
                                threshold.stall_usec, threshold.window_usec);
  ssize_t written = -1;
  do {
    written = write(fd, text.c_str(), text.size() + 1);
  } while (written < 0 && errno == EINTR);
  return written >= 0;
}

// The same share of a window that an unprivileged caller may ask for.
PressureThreshold widened(PressureThreshold threshold) {
  const std::uint64_t stall =
      std::uint64_t{threshold.stall_usec} * kUnprivilegedWindowUsec / threshold.window_usec;
  threshold.stall_usec = static_cast<std::uint32_t>(stall);
  threshold.window_usec = kUnprivilegedWindowUsec;
  return threshold;
}

}  // namespace

model::Result<PressureTrigger> PressureTrigger::arm(int directory_fd, const char* file,
                                                    const PressureThreshold& threshold) {
  const auto failed = [&](const char* what) {
    return model::fail(model::Error::from_errno(errno, fmt::format("cannot {} {}", what, file)));
  };
  os::FileDescriptor fd(openat(directory_fd, file, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return failed("open");
  if (!is_kernels(fd.get())) {
    return model::fail(model::ErrorKind::unavailable,
                       fmt::format("{} is an ordinary file, not the kernel's", file));
  }
  PressureThreshold armed = threshold;
  if (!write_trigger(fd.get(), armed)) {
    if (errno != EINVAL || armed.window_usec % kUnprivilegedWindowUsec == 0) return failed("arm");
    armed = widened(armed);
    if (!write_trigger(fd.get(), armed)) return failed("arm");
  }
  return PressureTrigger(std::move(fd), std::int64_t{armed.window_usec} * 1000);
}

bool PressureTrigger::rose(std::int64_t now_ns) {
  const bool first = last_event_ns_ == 0 || now_ns - last_event_ns_ > kQuietWindows * window_ns_;
  last_event_ns_ = now_ns;
  return first;
}

}  // namespace berth::cgroup
