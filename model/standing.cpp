// SPDX-License-Identifier: Apache-2.0
#include "model/standing.h"

namespace berth::model {

RunId run_of(const Workload& workload) {
  return workload.cgroup_id != 0 ? RunId{.cgroup_id = workload.cgroup_id}
                                 : RunId{.created = workload.created};
}

Standing standing_in(const Snapshot& recorded) {
  Standing standing;
  standing.straggler_seen_at = recorded.straggler_seen_at;
  standing.spark_evicted = recorded.spark_evicted;
  standing.advertised = recorded.advertised;
  for (const Workload& workload : recorded.workloads) {
    if (workload.shares) standing.sharing.insert(workload.id);
    if (!workload.straggled_at && !workload.pressed_at && !workload.lending) continue;
    standing.runs.emplace(workload.id, RunMemory{.run = run_of(workload),
                                                 .straggled_at = workload.straggled_at,
                                                 .relocated_at = {},
                                                 .pressed_at = workload.pressed_at,
                                                 .lending = workload.lending});
  }
  return standing;
}

void put_on(const Standing& standing, Snapshot& snapshot) {
  snapshot.straggler_seen_at = standing.straggler_seen_at;
  snapshot.spark_evicted = standing.spark_evicted;
  snapshot.advertised = standing.advertised;
  static const RunMemory kNothing;
  auto known = standing.runs.begin();
  for (Workload& workload : snapshot.workloads) {
    while (known != standing.runs.end() && known->first < workload.id) ++known;
    const bool same_run =
        known != standing.runs.end() && known->first == workload.id && known->second.run == run_of(workload);
    const RunMemory& memory = same_run ? known->second : kNothing;
    workload.straggled_at = memory.straggled_at;
    workload.pressed_at = memory.pressed_at;
    workload.lending = memory.lending;
  }
}

std::optional<RecentUse> recent_use(const Standing& standing, double now) {
  RecentUse sum;
  for (const TickUse& tick : standing.recent) {
    if (tick.time <= now - kRecent_s || tick.time >= now) continue;
    ++sum.samples;
    sum.cpu += tick.cpu;
    sum.memory += tick.memory;
    sum.load1 += tick.load1;
  }
  if (sum.samples == 0) return std::nullopt;
  sum.cpu /= sum.samples;
  sum.memory /= sum.samples;
  sum.load1 /= sum.samples;
  return sum;
}

std::set<std::string> lenders(const Standing& standing) {
  std::set<std::string> ids;
  for (const auto& [id, memory] : standing.runs) {
    if (memory.lending && !memory.lending->cpus.empty()) ids.insert(id);
  }
  return ids;
}

void forget_lending(Standing& standing) {
  for (auto& [id, memory] : standing.runs) memory.lending.reset();
}

void forget_evictions(Standing& standing) {
  standing.spark_evicted.clear();
  standing.memory_short_at.reset();
}

}  // namespace berth::model
