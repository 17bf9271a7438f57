// SPDX-License-Identifier: Apache-2.0
#include "model/standing.h"

#include <utility>

namespace berth::model {

namespace {

// The attributes that berth holds of a recorded workload.
std::map<Attribute, HeldAttribute> held_in(const Workload& recorded) {
  const double pinned_at = recorded.pinned_at.value_or(0);
  std::map<Attribute, HeldAttribute> held;
  for (const Attribute attribute : kAttributes) {
    const auto value = value_in(recorded, attribute);
    if (!value) continue;
    std::optional<HeldLimit> limit = HeldLimit{.since = pinned_at, .changed_at = pinned_at};
    if (attribute == Attribute::cpu_quota) limit = recorded.held_cpu;
    if (attribute == Attribute::memory_high) limit = recorded.held_memory;
    if (limit) held[attribute] = {*value, *limit};
  }
  return held;
}

// Puts an attribute that would be held on a workload as its owner has it.
class Over {
 public:
  Over(Workload& workload, const HeldLimit& held) : workload_(workload), held_(held) {}

  void operator()(const CpuSet& cpus) {
    workload_.cpus = cpus;
    if (held_.changed_at > 0) workload_.pinned_at = held_.changed_at;
  }
  void operator()(const MemoryNodes& bound) { workload_.memory_nodes = bound.nodes; }
  // No workload has one of its own.
  void operator()(const LowPriority& /*priority*/) {}
  // All that is_other() names.
  template <typename Value>
  void operator()(const Value& value) {
    workload_.others.insert_or_assign(attribute_of(AttributeValue(value)), value);
  }
  void operator()(const CpuQuota& quota) {
    keep_original();
    workload_.cpu_quota_cores = quota.cores;
    workload_.held_cpu = held_;
  }
  void operator()(const MemoryHigh& limit) {
    keep_original();
    workload_.memory_high_bytes = limit.bytes;
    workload_.held_memory = held_;
  }

 private:
  void keep_original() {
    if (!workload_.original)
      workload_.original = OriginalLimits{workload_.cpu_quota_cores, workload_.memory_high_bytes};
  }

  Workload& workload_;
  const HeldLimit& held_;
};

// The values that groups would hold.
template <typename Value, typename Group>
void put_on_groups(const std::map<std::string, HeldAttribute>& held, std::vector<Group>& groups) {
  if (held.empty()) return;
  for (Group& group : groups) {
    const auto known = held.find(group.id);
    if (known == held.end()) continue;
    group.held = std::get<Value>(known->second.value);
    if (known->second.held.changed_at > 0) group.changed_at = known->second.held.changed_at;
  }
}

}  // namespace

RunId run_of(const Workload& workload) {
  return workload.cgroup_id != 0 ? RunId{.cgroup_id = workload.cgroup_id}
                                 : RunId{.created = workload.created};
}

Standing standing_in(const Snapshot& recorded) {
  Standing standing;
  standing.straggler_seen_at = recorded.straggler_seen_at;
  standing.spark_evicted = recorded.spark_evicted;
  standing.advertised = recorded.advertised;
  standing.best_effort_cores = recorded.best_effort_cores;
  for (const Workload& workload : recorded.workloads) {
    if (workload.shares) standing.sharing.insert(workload.id);
    auto held = held_in(workload);
    if (held.empty() && !workload.evicted_at && !workload.straggled_at && !workload.pressed_at &&
        workload.home.empty())
      continue;
    standing.runs.emplace(workload.id, RunMemory{.run = run_of(workload),
                                                 .held = std::move(held),
                                                 .evicted_at = workload.evicted_at,
                                                 .straggled_at = workload.straggled_at,
                                                 .relocated_at = {},
                                                 .pressed_at = workload.pressed_at,
                                                 .home = workload.home});
  }
  for (const BestEffortGroup& group : recorded.groups) {
    if (!group.held) continue;
    const double changed_at = group.changed_at.value_or(0);
    standing.groups.emplace(
        group.id, HeldAttribute{*group.held, HeldLimit{.since = changed_at, .changed_at = changed_at}});
  }
  for (const OtherGroup& group : recorded.others) {
    if (!group.held) continue;
    const double changed_at = group.changed_at.value_or(0);
    standing.others.emplace(
        group.id, HeldAttribute{*group.held, HeldLimit{.since = changed_at, .changed_at = changed_at}});
  }
  return standing;
}

void put_on(const Standing& standing, Snapshot& snapshot) {
  snapshot.straggler_seen_at = standing.straggler_seen_at;
  snapshot.spark_evicted = standing.spark_evicted;
  snapshot.advertised = standing.advertised;
  snapshot.best_effort_cores = standing.best_effort_cores;
  static const RunMemory kNothing;
  auto known = standing.runs.begin();
  for (Workload& workload : snapshot.workloads) {
    while (known != standing.runs.end() && known->first < workload.id) ++known;
    const bool same_run =
        known != standing.runs.end() && known->first == workload.id && known->second.run == run_of(workload);
    const RunMemory& memory = same_run ? known->second : kNothing;
    workload.straggled_at = memory.straggled_at;
    workload.pressed_at = memory.pressed_at;
    workload.home = memory.home;
    for (const auto& [attribute, it] : memory.held) std::visit(Over(workload, it.held), it.value);
    if (memory.evicted_at) workload.evicted_at = memory.evicted_at;
    if (memory.held.contains(Attribute::cpus)) workload.shares = standing.sharing.contains(workload.id);
  }
  put_on_groups<LowPriority>(standing.groups, snapshot.groups);
  put_on_groups<CpuSet>(standing.others, snapshot.others);
}

OriginalLimits limits_of_owner(const Workload& workload) {
  OriginalLimits owner{workload.cpu_quota_cores, workload.memory_high_bytes};
  if (!workload.original) return owner;
  if (workload.held_cpu) owner.cpu_quota_cores = workload.original->cpu_quota_cores;
  if (workload.held_memory) owner.memory_high_bytes = workload.original->memory_high_bytes;
  return owner;
}

void take_off(Snapshot& snapshot) {
  for (Workload& workload : snapshot.workloads) {
    const OriginalLimits owner = limits_of_owner(workload);
    if (!workload.cpus.empty()) workload.cpus = {};
    workload.shares = false;
    workload.pinned_at.reset();
    if (!workload.memory_nodes.empty()) workload.memory_nodes = {};
    if (!workload.others.empty()) workload.others.clear();
    workload.cpu_quota_cores = owner.cpu_quota_cores;
    workload.memory_high_bytes = owner.memory_high_bytes;
    workload.original.reset();
    workload.held_cpu.reset();
    workload.held_memory.reset();
    workload.evicted_at.reset();
  }
  for (BestEffortGroup& group : snapshot.groups) {
    group.held.reset();
    group.changed_at.reset();
  }
  for (OtherGroup& group : snapshot.others) {
    group.held.reset();
    group.changed_at.reset();
  }
}

const HeldAttribute* find_held(const Standing& standing, const Workload& workload, Attribute attribute) {
  const auto memory = standing.runs.find(workload.id);
  if (memory == standing.runs.end() || memory->second.run != run_of(workload)) return nullptr;
  const auto found = memory->second.held.find(attribute);
  return found != memory->second.held.end() ? &found->second : nullptr;
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

void forget_evictions(Standing& standing) {
  standing.spark_evicted.clear();
  standing.memory_short_at.reset();
}

void forget_held(Standing& standing) {
  for (auto& [id, memory] : standing.runs) {
    memory.held.clear();
    memory.evicted_at.reset();
  }
  standing.groups.clear();
  standing.others.clear();
}

}  // namespace berth::model
