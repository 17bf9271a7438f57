// SPDX-License-Identifier: Apache-2.0
// Files of proc(5) about processes. A process can end at any time, and its owner can choose much of the
// content: each file is read up to a limit, and a missing or malformed one gives nullopt or nothing.
// `process` is the directory /proc/PID.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace berth::os {

// The numbers of all processes, ascending.
std::vector<pid_t> pids_of(const std::filesystem::path& proc_root);

// The first `most` bytes of a file; empty where it cannot be read.
std::string read_start(const std::filesystem::path& file, std::size_t most);

// Enough for the command line of a JVM with a long class path: the kernel takes no argument above 128 KiB.
inline constexpr std::size_t kMostCommandLine = std::size_t{256} << 10;

// Fields of /proc/PID/stat.
struct Stat {
  std::string name;
  char state = '?';
  pid_t parent = 0;
  unsigned flags = 0;  // PF_* of the kernel
  int threads = 0;
  std::uint64_t started = 0;  // clock ticks after boot; with the pid it names one process of this boot
};
std::optional<Stat> read_stat(const std::filesystem::path& process);

// Whether the process hangs in the kernel, and its threads that hang run no instruction of the program again:
// each thread is dead, is ending, or is to end first (SIGKILL). False for one that is dead altogether.
bool hangs_for_good(const std::filesystem::path& process);

// The text of a field of /proc/PID/status, such as "0\t0\t0\t0" for "Uid".
std::optional<std::string> status_field(const std::filesystem::path& process, std::string_view name);

// The user that owns files and sockets which the process makes now: the last number of Uid in status.
std::optional<uid_t> user_of(const std::filesystem::path& process);

// The cgroup v2 path in /proc/PID/cgroup, without a leading slash; empty for the root (cgroups(7)).
std::optional<std::string> cgroup_of(const std::filesystem::path& process);

// The cgroup of a process of the effective user `uid`. nullopt also for a process of another user: the number
// then belongs to a later process.
std::optional<std::string> cgroup_of_process(const std::filesystem::path& proc_root, pid_t pid, uid_t uid);

// Fields of /proc/PID/statm, in bytes.
struct MemoryUse {
  std::uint64_t resident_bytes = 0;
  std::uint64_t shared_bytes = 0;  // resident pages of files and of shared memory
};
std::optional<MemoryUse> read_memory_use(const std::filesystem::path& process);

// Resident memory of these processes, in bytes, without pages of files and of shared memory: about the memory
// that becomes free when they end. nullopt where no process can be read.
std::optional<std::uint64_t> private_memory_bytes(const std::filesystem::path& proc_root,
                                                  const std::vector<pid_t>& pids);

}  // namespace berth::os
