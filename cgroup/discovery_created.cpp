// SPDX-License-Identifier: Apache-2.0
#include "cgroup/discovery_created.h"

#include "cgroup/file_descriptor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

constexpr int kMaxProcesses = 256;
constexpr int kStartTimeField = 22;  // of /proc/PID/stat, in clock ticks since boot (proc(5))

double seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::size_t read_some(int directory, const char* path, char* buffer, std::size_t size) {
  const FileDescriptor fd(openat(directory, path, O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  ssize_t n = -1;
  do {
    n = read(fd.get(), buffer, size);
  } while (n < 0 && errno == EINTR);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

// Seconds after boot; nullopt where the process is gone.
std::optional<double> process_start(const std::filesystem::path& proc_root, std::string_view pid) {
  std::array<char, 1024> buffer{};
  const std::filesystem::path stat = proc_root / pid / "stat";
  std::string_view text(buffer.data(), read_some(AT_FDCWD, stat.c_str(), buffer.data(), buffer.size()));
  // The command, field 2, may hold blanks and parentheses; the last ')' ends it.
  const std::size_t command_end = text.rfind(')');
  if (command_end == std::string_view::npos) return std::nullopt;
  text.remove_prefix(command_end + 1);
  for (int field = 2; field < kStartTimeField; ++field) {
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    text.remove_prefix(blank + 1);
  }
  std::uint64_t ticks = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), ticks).ec != std::errc()) return std::nullopt;
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

double created_at(int directory, const std::filesystem::path& proc_root) {
  double created = seconds(CLOCK_REALTIME);
  struct statx status {};
  if (statx(directory, "", AT_EMPTY_PATH, STATX_BTIME | STATX_CTIME, &status) == 0) {
    const statx_timestamp& time = (status.stx_mask & STATX_BTIME) ? status.stx_btime : status.stx_ctime;
    created = std::min(created, static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9);
  }

  std::array<char, kMaxProcesses * std::size_t{8}> buffer{};
  std::string_view pids(buffer.data(), read_some(directory, "cgroup.procs", buffer.data(), buffer.size()));
  const double booted = seconds(CLOCK_REALTIME) - seconds(CLOCK_BOOTTIME);
  for (int i = 0; i < kMaxProcesses; ++i) {
    const std::size_t end = pids.find('\n');
    if (end == std::string_view::npos) break;  // a number cut off by the buffer's end is left out
    const std::string_view pid = pids.substr(0, end);
    pids.remove_prefix(end + 1);
    if (pid.empty() || pid.find_first_not_of("0123456789") != std::string_view::npos) continue;
    if (const auto start = process_start(proc_root, pid)) created = std::min(created, booted + *start);
  }
  return created;
}

}  // namespace berth::cgroup
