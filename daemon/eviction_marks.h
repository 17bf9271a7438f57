// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace berth::daemon {

// What evictions say about workloads to the next snapshot, each of one run (cgroup id).
struct EvictionMarks {
  struct Mark {
    std::uint64_t cgroup_id = 0;
    std::optional<double> evicted_at;  // epoch seconds; nullopt: it could not be evicted, and is spared
  };
  std::map<std::string, Mark> by_workload;
  std::optional<double> ended_at;  // epoch seconds: when the last one had ended

  // nullptr where nothing is known of that run.
  const Mark* of(const std::string& workload, std::uint64_t cgroup_id) const {
    const auto found = by_workload.find(workload);
    return found != by_workload.end() && found->second.cgroup_id == cgroup_id ? &found->second : nullptr;
  }
};

// By its path: a slice, which holds other units, and what is berth's own.
inline bool is_never_evicted(const std::string& workload) {
  return workload.ends_with(".slice") || workload.starts_with("berth.slice/") ||
         workload.ends_with("/berthd.service");
}

}  // namespace berth::daemon
