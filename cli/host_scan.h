// SPDX-License-Identifier: Apache-2.0
// Looks at the services and containers of a host without berthd.
#pragma once

#include "cli/problem.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::cli {

// One systemd unit with processes: the cgroup of a service, or of a scope such as a container's.
struct SeenUnit {
  std::string id;  // path below the cgroup root, as in [[workload]] match
  std::size_t processes = 0;
  std::set<std::uint16_t> ports;  // TCP ports at which it listens, of the processes that may be looked into
  std::size_t connections = 0;    // established at these ports, in the network namespaces of its processes
  bool spark = false;             // has a process of Apache Spark
  std::optional<double> cores;    // mean use during the look
  std::optional<double> mean_cores;   // mean use since its oldest process started
  std::optional<double> quota_cores;  // its own CPU quota
};

struct SeenHost {
  std::vector<SeenUnit> units;  // ascending by id
  std::size_t cpus = 0;         // online
  std::size_t hidden = 0;       // processes whose sockets this user may not see
  std::size_t kubernetes = 0;   // units below kubepods.slice, which are not among `units`
};

// The mount point of the cgroup v2 tree by PROC_ROOT/self/mountinfo, the first of several. /sys/fs/cgroup
// where there is none.
std::filesystem::path cgroup_root_of(const std::filesystem::path& proc_root);

// Looks twice, with `wait` in between. Units of users' sessions, init.scope and berth's own are left out.
// Problem failed where there is no cgroup v2 tree.
Outcome<SeenHost> scan_host(const std::filesystem::path& proc_root, const std::filesystem::path& cgroup_root,
                            const std::function<void()>& wait);

// A first berth.toml for the host, every setting with its reason in a comment. Units that listen become
// latency-sensitive, units that only compute become best-effort; those of the base system are left alone.
// `heading` is the first line, without "# ".
std::string suggestion(const SeenHost& host, const std::string& heading);

}  // namespace berth::cli
