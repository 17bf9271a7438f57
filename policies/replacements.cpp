// SPDX-License-Identifier: Apache-2.0
#include "policies/replacements.h"

#include <algorithm>

namespace berth::policies {

bool is_memory_short(const model::Snapshot& snapshot, const model::Plan& plan) {
  const auto& memory = snapshot.advertised.memory;
  if (memory && memory->state == model::SchedulingState::evict) return true;
  return plan.findings.eviction && plan.findings.eviction->need_bytes > 0;
}

std::set<std::string> replacements_to_hold(const model::Snapshot& snapshot, double hold_s) {
  std::set<std::string> held;
  if (hold_s <= 0 || snapshot.spark_evicted.empty()) return held;
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::best_effort || workload.spared) continue;
    if (!workload.spark || workload.spark->role != model::SparkRole::executor || workload.evicted_at)
      continue;
    const auto evicted = snapshot.spark_evicted.find(workload.spark->app);
    if (evicted == snapshot.spark_evicted.end() || workload.created <= evicted->second) continue;
    held.insert(workload.id);
  }
  return held;
}

std::optional<model::Action> hold(const model::Workload& workload, const std::string& reason) {
  if (workload.fixed.cpu) return std::nullopt;
  const double cores = std::min(workload.cpu_quota_cores.value_or(kHeldCores), kHeldCores);
  return model::Action{.what = model::Set{.workload = workload.id, .value = model::CpuQuota{cores}},
                       .policy = "eviction",
                       .decision = {},
                       .reason = reason};
}

}  // namespace berth::policies
