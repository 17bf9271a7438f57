// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/held.h"

#include "model/held_cause.h"
#include "model/standing.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace berth::daemon {

using model::Attribute;
using model::HeldCause;

const Held* find_held(const HeldValues& values, const std::string& workload) {
  const auto found = values.find(workload);
  return found == values.end() ? nullptr : &found->second;
}

Held make_held(std::uint64_t cgroup_id, cgroup::Value value, cgroup::Value original, double now) {
  Held held;
  held.cgroup_id = cgroup_id;
  held.value = std::move(value);
  held.original = std::move(original);
  held.since = now;
  held.changed_at = now;
  return held;
}

std::optional<cgroup::Value> wanted_value(const model::Action& action,
                                          const std::optional<cgroup::Value>& original) {
  const auto* set = std::get_if<model::Set>(&action.what);
  if (set == nullptr) return std::nullopt;
  cgroup::Value value = cgroup::value_of(set->value, original);
  // A pin to the vCPUs that it had anyway is a pin.
  if (value == original && action.attribute() != Attribute::cpus) return std::nullopt;
  return value;
}

HeldCause cause_of(const model::Plan& plan, const model::Snapshot& snapshot, const std::string& workload,
                   Attribute attribute, const Held* before) {
  return model::held_cause(plan, find_workload(snapshot, workload), workload,
                           attribute == Attribute::cpu_quota ? model::Resource::cpu : model::Resource::memory,
                           before != nullptr ? std::optional(before->cause) : std::nullopt);
}

Limits limits_of(const model::Workload& seen, const Holdings& holdings) {
  Limits limits;
  limits.original = model::limits_of_owner(seen);
  limits.cpu_quota_cores = limits.original.cpu_quota_cores;
  limits.memory_high_bytes = limits.original.memory_high_bytes;
  if (const auto* held = find_held(holdings.of(Attribute::cpu_quota), seen.id)) {
    limits.cpu_quota_cores = cgroup::cores_of(std::get<cgroup::CpuMax>(held->value));
    limits.original.cpu_quota_cores = cgroup::cores_of(std::get<cgroup::CpuMax>(held->original));
    limits.cpu_cause = held->cause;
  }
  if (const auto* held = find_held(holdings.of(Attribute::memory_high), seen.id)) {
    limits.memory_high_bytes = cgroup::bytes_of(std::get<model::MemoryHigh>(held->value));
    limits.original.memory_high_bytes = cgroup::bytes_of(std::get<model::MemoryHigh>(held->original));
    limits.memory_cause = held->cause;
  }
  return limits;
}

HeldCounts count_held(const Holdings& holdings) {
  HeldCounts counts;
  for (const auto* values : {&holdings.of(Attribute::cpu_quota), &holdings.of(Attribute::memory_high)}) {
    for (const auto& [id, held] : *values) {
      switch (held.cause) {
        case HeldCause::extended:
          ++counts.extended;
          break;
        case HeldCause::lent:
          ++counts.lent;
          break;
        case HeldCause::preempted:
          ++counts.preempted;
          break;
        case HeldCause::lifted:
          ++counts.lifted;
          break;
      }
    }
  }
  return counts;
}

}  // namespace berth::daemon
