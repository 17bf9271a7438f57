// SPDX-License-Identifier: Apache-2.0
#include "policies/after.h"

#include "model/held_cause.h"
#include "policies/decide.h"
#include "policies/replacements.h"

#include <algorithm>
#include <variant>

namespace berth::policies {

namespace {

using model::RunMemory;
using model::Snapshot;
using model::Workload;

// The largest utilisation that a snapshot takes.
constexpr double kMostUse = 1e6;

void forget_ended_runs(model::Standing& standing, const Snapshot& snapshot) {
  auto workload = snapshot.workloads.begin();  // both ascend by id
  std::erase_if(standing.runs, [&](const auto& item) {
    while (workload != snapshot.workloads.end() && workload->id < item.first) ++workload;
    return workload == snapshot.workloads.end() || workload->id != item.first ||
           model::run_of(*workload) != item.second.run;
  });
  std::erase_if(standing.groups,
                [&](const auto& item) { return find_group(snapshot, item.first) == nullptr; });
  std::erase_if(standing.others,
                [&](const auto& item) { return find_other(snapshot, item.first) == nullptr; });
}

RunMemory& memory_of(model::Standing& standing, const Workload& workload) {
  RunMemory& memory = standing.runs[workload.id];
  memory.run = model::run_of(workload);
  return memory;
}

// nullptr if the workload does not run: it is pending, say.
RunMemory* memory_of(model::Standing& standing, const Snapshot& snapshot, const std::string& id) {
  const Workload* workload = find_workload(snapshot, id);
  return workload != nullptr ? &memory_of(standing, *workload) : nullptr;
}

void take_stragglers(model::Standing& standing, const Snapshot& snapshot, const model::Plan& plan) {
  if (!plan.findings.straggler) return;
  for (const auto& [id, task] : plan.findings.straggler->tasks) {
    if (!task.straggler) continue;
    RunMemory* memory = memory_of(standing, snapshot, id);
    if (memory == nullptr) continue;
    memory->straggled_at = plan.time;
    standing.straggler_seen_at = plan.time;
  }
  for (const auto& relocation : plan.findings.straggler->relocate) {
    if (RunMemory* memory = memory_of(standing, snapshot, relocation.workload))
      memory->relocated_at = plan.time;
  }
  for (const auto& move : plan.findings.straggler->moves) {
    if (move.kind != model::LimitMove::Kind::recall) continue;
    if (RunMemory* memory = memory_of(standing, snapshot, move.workload)) memory->pressed_at = plan.time;
  }
}

void take_homes(model::Standing& standing, const Snapshot& snapshot, const model::Plan& plan) {
  if (!plan.findings.interference) return;
  const auto& shared = plan.findings.interference->shared;
  for (auto& [id, memory] : standing.runs) {
    if (!shared.contains(id) || shared.at(id).home.empty()) memory.home = {};
  }
  for (const auto& [id, instance] : shared) {
    if (instance.home.empty()) continue;
    if (RunMemory* memory = memory_of(standing, snapshot, id)) memory->home = instance.home;
  }
  standing.best_effort_cores = plan.findings.interference->best_effort.domains;
}

// Once memory was not short for eviction.hold, the evictions are forgotten.
void take_evictions(model::Standing& standing, const Snapshot& snapshot, const model::Plan& plan,
                    const Outcomes& outcomes, double hold_s) {
  if (is_memory_short(snapshot, plan)) standing.memory_short_at = plan.time;
  std::erase_if(standing.spark_evicted, [&](const auto& item) {
    // A time in the future comes from a clock that was set back.
    const double ago_s = plan.time - std::max(item.second, standing.memory_short_at.value_or(item.second));
    return ago_s < 0 || ago_s >= hold_s;
  });
  for (const std::string& id : outcomes.evicted) {
    const Workload* workload = find_workload(snapshot, id);
    if (workload != nullptr && workload->spark) standing.spark_evicted[workload->spark->app] = plan.time;
  }
}

// A limit as the workload's owner has it; nullopt for other attributes. A pin is one even if the owner allows
// the same vCPUs.
std::optional<model::AttributeValue> of_owner(const Workload& workload, model::Attribute attribute) {
  const model::OriginalLimits limits = model::limits_of_owner(workload);
  if (attribute == model::Attribute::cpu_quota) return model::CpuQuota{limits.cpu_quota_cores};
  if (attribute == model::Attribute::memory_high) return model::MemoryHigh{limits.memory_high_bytes};
  return std::nullopt;
}

void give_back(model::Standing& standing, const Workload& workload, model::Attribute attribute) {
  const auto known = standing.runs.find(workload.id);
  if (known != standing.runs.end()) known->second.held.erase(attribute);
}

void hold(model::Standing& standing, const Workload& workload, const model::Plan& plan,
          const model::AttributeValue& wanted) {
  const model::Attribute attribute = attribute_of(wanted);
  const model::HeldAttribute* before = model::find_held(standing, workload, attribute);
  const model::AttributeValue value = model::as_kept(wanted);
  // A limit is given back by being set to the owner's, which need not be a value that as_kept() makes.
  if (const auto own = of_owner(workload, attribute); own && (wanted == *own || value == *own)) {
    give_back(standing, workload, attribute);
    return;
  }
  model::HeldLimit limit{.since = before != nullptr ? before->held.since : plan.time,
                         .changed_at = plan.time};
  if (attribute == model::Attribute::cpu_quota || attribute == model::Attribute::memory_high) {
    const auto resource =
        attribute == model::Attribute::cpu_quota ? model::Resource::cpu : model::Resource::memory;
    limit.cause = model::held_cause(plan, &workload, workload.id, resource,
                                    before != nullptr ? std::optional(before->held.cause) : std::nullopt);
  }
  memory_of(standing, workload).held.insert_or_assign(attribute, model::HeldAttribute{value, limit});
}

// Of a group: of best-effort work, or of other work. `held`: what these hold.
void take_change(std::map<std::string, model::HeldAttribute>& held, const model::Plan& plan,
                 const std::string& id, const model::Action& action) {
  const auto* set = std::get_if<model::Set>(&action.what);
  if (set == nullptr) {
    held.erase(id);
    return;
  }
  const auto known = held.find(id);
  const double since = known != held.end() ? known->second.held.since : plan.time;
  held.insert_or_assign(id, model::HeldAttribute{set->value, {.since = since, .changed_at = plan.time}});
}

// Takes what the plan would hold and end, if it were carried out.
void take_actions(model::Standing& standing, const Snapshot& snapshot, const model::Plan& plan) {
  for (const model::Action& action : plan.actions) {
    const std::string* id = action.workload();
    if (id != nullptr && action.attribute() == model::Attribute::cpu_idle) {
      if (find_group(snapshot, *id) != nullptr) take_change(standing.groups, plan, *id, action);
      continue;
    }
    const Workload* workload = id != nullptr ? find_workload(snapshot, *id) : nullptr;
    if (workload == nullptr) {  // other work, an advertisement, or a pending one
      if (id != nullptr && action.attribute() == model::Attribute::cpus &&
          find_other(snapshot, *id) != nullptr)
        take_change(standing.others, plan, *id, action);
      continue;
    }
    if (const auto* set = std::get_if<model::Set>(&action.what)) {
      hold(standing, *workload, plan, set->value);
    } else if (const auto* back = std::get_if<model::GiveBack>(&action.what)) {
      give_back(standing, *workload, back->attribute);
    } else if (std::holds_alternative<model::Evict>(action.what)) {
      RunMemory& memory = memory_of(standing, *workload);
      if (!memory.evicted_at) memory.evicted_at = plan.time;
    }
  }
}

void take_advertisement(model::Standing& standing, const model::Plan& plan) {
  for (const model::Action& action : plan.actions) {
    const auto* wanted = std::get_if<model::Advertise>(&action.what);
    if (wanted == nullptr) continue;
    auto& said =
        wanted->resource == model::Resource::cpu ? standing.advertised.cpu : standing.advertised.memory;
    said = {.factor = wanted->factor, .state = wanted->state};
  }
}

void take_use(model::Standing& standing, const Snapshot& snapshot, const model::Plan& plan) {
  if (!plan.findings.oversell) return;
  auto& recent = standing.recent;
  while (!recent.empty() && recent.front().time <= plan.time - model::kRecent_s) recent.pop_front();
  recent.push_back({.time = plan.time,
                    .cpu = std::clamp(plan.findings.oversell->cpu.utilisation, 0.0, kMostUse),
                    .memory = std::clamp(plan.findings.oversell->memory.utilisation, 0.0, kMostUse),
                    .load1 = snapshot.load1});
}

}  // namespace

Outcomes assumed(const model::Plan& plan) {
  Outcomes outcomes;
  outcomes.assumed = true;
  for (const model::Action& action : plan.actions) {
    if (std::holds_alternative<model::Evict>(action.what)) outcomes.evicted.insert(*action.workload());
  }
  return outcomes;
}

model::Standing after(model::Standing standing, const Snapshot& snapshot, const model::Plan& plan,
                      const Outcomes& outcomes, const PolicySettings& settings) {
  forget_ended_runs(standing, snapshot);
  take_stragglers(standing, snapshot, plan);
  take_homes(standing, snapshot, plan);
  take_evictions(standing, snapshot, plan, outcomes, settings.eviction.hold_s);
  if (outcomes.assumed) take_actions(standing, snapshot, plan);
  take_advertisement(standing, plan);
  take_use(standing, snapshot, plan);
  standing.sharing = without_own_vcpus(plan);
  return standing;
}

model::Standing after_places(model::Standing standing, const Snapshot& snapshot, const model::Plan& plan,
                             const Outcomes& outcomes, const std::set<std::string>& arrived) {
  forget_ended_runs(standing, snapshot);
  if (outcomes.assumed) take_actions(standing, snapshot, plan);
  if (plan.findings.interference)
    standing.best_effort_cores = plan.findings.interference->best_effort.domains;
  std::set<std::string> placed = arrived;
  for (const model::Action& action : plan.actions) {
    if (action.attribute() == model::Attribute::cpus) placed.insert(*action.workload());
  }
  for (const std::string& id : placed) standing.sharing.erase(id);
  for (const std::string& id : without_own_vcpus(plan)) {
    if (placed.contains(id)) standing.sharing.insert(id);
  }
  return standing;
}

}  // namespace berth::policies
