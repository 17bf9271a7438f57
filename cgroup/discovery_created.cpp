// SPDX-License-Identifier: Apache-2.0
#include "cgroup/discovery_created.h"

#include "model/text.h"
#include "os/file_descriptor.h"
#include "os/proc_files.h"
#include "os/read_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

constexpr int kMaxProcesses = 256;

std::size_t read_some(int directory, const char* path, char* buffer, std::size_t size) {
  const os::FileDescriptor fd(openat(directory, path, O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  const ssize_t n = os::read_retrying(fd.get(), buffer, size);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

}  // namespace

Creation created_at(int directory, const std::filesystem::path& proc_root, const os::Clock& clock) {
  Creation created{.process = {}, .directory = clock.now()};
  struct statx status {};
  if (statx(directory, "", AT_EMPTY_PATH, STATX_BTIME | STATX_CTIME, &status) == 0) {
    const statx_timestamp& time = (status.stx_mask & STATX_BTIME) ? status.stx_btime : status.stx_ctime;
    const double wall = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    created.directory = std::min(created.directory, wall - clock.wall_ahead_s());
  }

  std::array<char, kMaxProcesses * std::size_t{8}> buffer{};
  std::string_view pids(buffer.data(), read_some(directory, "cgroup.procs", buffer.data(), buffer.size()));
  const auto ticks_per_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  for (int i = 0; i < kMaxProcesses; ++i) {
    const std::size_t end = pids.find('\n');
    if (end == std::string_view::npos) break;  // a number cut off by the buffer's end is left out
    const std::string_view pid = pids.substr(0, end);
    pids.remove_prefix(end + 1);
    if (!model::is_digits(pid)) continue;
    const auto stat = os::read_stat(proc_root / pid);
    if (!stat) continue;
    const double started = clock.of_boot(static_cast<double>(stat->started) / ticks_per_s);
    created.process = std::min(created.process.value_or(started), started);
  }
  return created;
}

}  // namespace berth::cgroup
