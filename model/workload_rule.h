// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/workload.h"

#include <cstdint>
#include <optional>
#include <string>

namespace berth::model {

// One [[workload]] table of the configuration: the operator's settings for the cgroups that a glob matches.
// Unset members are left to the built-in recognition or the workload's own limits.
struct WorkloadRule {
  std::string match;  // glob over the cgroup path below the v2 root, no leading slash; '*' stops at '/', '**'
                      // does not
  std::string origin;  // "FILE:LINE", for messages
  std::optional<WorkloadClass> workload_class;
  bool ignored = false;  // the cgroup is no workload, whatever else would make it one
  std::optional<std::string> service;
  std::optional<int> vcpus;
  std::optional<Isolation> isolation;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<int> priority;
  std::optional<bool> evictable;
  std::optional<bool> force;                 // true: it is pinned to its vcpus even below its measured use
  std::optional<double> deadline_s;          // after the workload's creation
  std::optional<std::string> progress_file;  // where it writes its progress; specifiers as in berth.toml(5)

  friend bool operator==(const WorkloadRule&, const WorkloadRule&) = default;
};

}  // namespace berth::model
