// SPDX-License-Identifier: Apache-2.0
// An eviction takes some seconds. Memory that rises meanwhile has to be freed too. One victim a tick is
// enough only while the victims that are on their way free as much as is added. So the plan evicts as many at
// once as cover the rise during the steps of one eviction, less the memory that is being freed already.
#include "policies/oversell/pace.h"

#include "policies/usage.h"
#include "policies/victim.h"

#include <algorithm>
#include <optional>

namespace berth::policies {

namespace {

// Decommission, terminate, kill.
constexpr double kSteps = 3;

struct Reading {
  double time = 0;
  double bytes = 0;
};

double rise_of(const model::Workload& workload, double span_s) {
  std::optional<Reading> newest;
  std::optional<Reading> before;  // the last one that is `span_s` older, else the first one
  for (const model::UsageSample& sample : workload.usage) {
    if (sample.memory_bytes) newest = {sample.time, static_cast<double>(*sample.memory_bytes)};
  }
  if (!newest) return 0;
  for (const model::UsageSample& sample : workload.usage) {
    if (!sample.memory_bytes || (before && sample.time > newest->time - span_s)) continue;
    before = {sample.time, static_cast<double>(*sample.memory_bytes)};
  }
  const double age_s = newest->time - before->time;
  if (age_s < span_s && workload.created > newest->time - span_s) return newest->bytes;
  if (age_s <= 0) return 0;
  return (newest->bytes - before->bytes) * span_s / age_s;
}

}  // namespace

double steps_take_s(double grace_s) { return kSteps * std::clamp(grace_s, kLeastStep_s, kEmergencyGrace_s); }

double memory_rise(const model::Snapshot& snapshot, double span_s) {
  double rise = 0;
  for (const model::Workload& workload : snapshot.workloads) {
    if (!workload.evicted_at) rise += rise_of(workload, span_s);
  }
  return std::max(0.0, rise);
}

std::size_t evictions_at_once(const std::vector<const model::Workload*>& candidates, double bytes,
                              std::size_t most) {
  most = std::min(most, candidates.size());
  std::size_t count = 0;
  double freed = 0;
  while (count < most) {
    const auto use = latest_memory(*candidates[count++]);
    if (!use) break;
    freed += static_cast<double>(*use);
    if (freed >= bytes) break;
  }
  return std::max(count, std::min<std::size_t>(1, candidates.size()));
}

}  // namespace berth::policies
