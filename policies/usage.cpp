// SPDX-License-Identifier: Apache-2.0
#include "policies/usage.h"

#include <algorithm>

namespace berth::policies {

double mean_cores(const model::Workload& workload) { return workload.usage.cpu().mean().value_or(0); }

std::optional<std::uint64_t> latest_memory(const model::Workload& workload) {
  if (workload.usage.memory().known == 0) return std::nullopt;
  for (auto sample = workload.usage.rbegin(); sample != workload.usage.rend(); ++sample) {
    if (sample->memory_bytes) return *sample->memory_bytes;
  }
  return std::nullopt;
}

std::optional<double> latest_use(const model::Workload& workload, model::Resource resource) {
  if (resource == model::Resource::cpu) {
    if (workload.usage.empty()) return std::nullopt;
    return workload.usage.back().cpu_cores;
  }
  const auto bytes = latest_memory(workload);
  if (!bytes) return std::nullopt;
  return static_cast<double>(*bytes);
}

bool is_use_current(const model::Workload& workload, double now) {
  return !workload.user || (!workload.usage.empty() && workload.usage.times().back() >= now);
}

std::uint64_t memory_in_use(const model::Workload& workload) { return latest_memory(workload).value_or(0); }

double cpu_seconds_used(const model::Workload& workload, double now) {
  if (workload.cpu_time_s) return *workload.cpu_time_s;
  if (workload.usage.empty()) return 0;
  const double since = workload.created > 0 ? workload.created : workload.usage.front().time;
  return mean_cores(workload) * std::max(0.0, now - since);
}

}  // namespace berth::policies
