// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/ground.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace berth::daemon {

// The policy of evictions by hand.
inline constexpr const char* kByHand = "operator";

// Facts from evictions for the next snapshot, each for one run (cgroup id).
struct EvictionMarks {
  struct Mark {
    std::uint64_t cgroup_id = 0;
    std::optional<double> evicted_at;  // epoch seconds; nullopt: it could not be evicted, and is spared
  };
  std::map<std::string, Mark> by_workload;
  std::optional<double> ended_at;  // epoch seconds: when the last one had ended

  // nullptr where there is no mark of that run.
  const Mark* of(const std::string& workload, std::uint64_t cgroup_id) const {
    const auto found = by_workload.find(workload);
    return found != by_workload.end() && found->second.cgroup_id == cgroup_id ? &found->second : nullptr;
  }
};

// Whether it is berthd's own cgroup. A name that a user gave does not make it that.
inline bool is_berthd(const std::string& workload, const model::Ground& ground) {
  return model::may_favour_itself(ground, model::Word::name) && workload.ends_with("/berthd.service");
}

// Whether the path alone rules eviction out: a slice, which holds other units, or berth's own cgroups. A name
// that a user gave does not.
inline bool is_never_evicted(const std::string& workload, const model::Ground& ground) {
  if (!model::may_favour_itself(ground, model::Word::name)) return false;
  return workload.ends_with(".slice") || workload.starts_with("berth.slice/") || is_berthd(workload, ground);
}

}  // namespace berth::daemon
