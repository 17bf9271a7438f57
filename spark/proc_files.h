// SPDX-License-Identifier: Apache-2.0
// Files of proc(5), as far as they tell which processes there are and where. What cannot be read, as of a
// process that has ended meanwhile, is nullopt or empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth::spark {

// Ascending.
std::vector<pid_t> pids_of(const std::filesystem::path& proc_root);

// The first bytes of a file, a little more than `most` where it has as many.
std::string read_start(const std::filesystem::path& file, std::size_t most);

struct Stat {
  std::string name;
  char state = '?';
  pid_t parent = 0;
  int threads = 0;
  std::uint64_t started = 0;  // clock ticks after boot
};
std::optional<Stat> read_stat(const std::filesystem::path& process);

// Whom files and sockets that it makes now belong to, as seen from here (Uid of /proc/PID/status, the last).
std::optional<uid_t> user_of(const std::filesystem::path& process);

// Path in the v2 tree, without a leading slash; empty for its root.
std::optional<std::string> cgroup_of(const std::filesystem::path& process);

}  // namespace berth::spark
