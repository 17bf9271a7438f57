// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace berth::daemon {

// The policy of what is asked for by hand.
inline constexpr const char* kByHand = "operator";

// What evictions say about workloads to the next snapshot, each of one run (cgroup id).
struct EvictionMarks {
  struct Mark {
    std::uint64_t cgroup_id = 0;
    std::optional<double> evicted_at;  // epoch seconds; nullopt: it could not be evicted, and is spared
  };
  std::map<std::string, Mark> by_workload;
  std::optional<double> ended_at;  // epoch seconds: when the last one had ended
  // By Spark application: epoch seconds when an executor or driver of it last began to be evicted for want of
  // memory, until that is over.
  std::map<std::string, double> apps;
  std::optional<double> short_at;  // epoch seconds: when memory was last short

  // Memory is `short_now`, or not. Once it has not been for `hold_s`, applications are forgotten.
  void look_at_memory(bool short_now, double now, double hold_s) {
    if (short_now) short_at = now;
    std::erase_if(apps, [&](const auto& item) {
      // A time in the future is one before the clock was set back.
      const double ago = now - std::max(item.second, short_at.value_or(item.second));
      return ago < 0 || ago >= hold_s;
    });
  }

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
