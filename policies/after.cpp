// SPDX-License-Identifier: Apache-2.0
#include "policies/after.h"

#include "policies/decide.h"
#include "policies/spark/hold.h"

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
  std::erase_if(standing.runs, [&](const auto& item) {
    const Workload* workload = find_workload(snapshot, item.first);
    return workload == nullptr || model::run_of(*workload) != item.second.run;
  });
}

// nullptr if the workload does not run: it is pending, say.
RunMemory* memory_of(model::Standing& standing, const Snapshot& snapshot, const std::string& id) {
  const Workload* workload = find_workload(snapshot, id);
  if (workload == nullptr) return nullptr;
  RunMemory& memory = standing.runs[id];
  memory.run = model::run_of(*workload);
  return &memory;
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

// A plan without borrowing ends all loans.
void take_lenders(model::Standing& standing, const Snapshot& snapshot, const model::Plan& plan) {
  model::forget_lending(standing);
  const auto& findings = plan.findings.interference;
  if (!findings || !findings->borrowing) return;
  for (const auto& [id, lender] : findings->borrowing->lenders) {
    if (RunMemory* memory = memory_of(standing, snapshot, id)) memory->lending = lender.state;
  }
}

// Once memory was not short for spark.hold, the evictions are forgotten.
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

Outcomes all_of(const model::Plan& plan) {
  Outcomes outcomes;
  for (const model::Action& action : plan.actions) {
    if (std::holds_alternative<model::Evict>(action.what)) outcomes.evicted.insert(*action.workload());
  }
  return outcomes;
}

model::Standing after(model::Standing standing, const Snapshot& snapshot, const model::Plan& plan,
                      const Outcomes& outcomes, const PolicySettings& settings) {
  forget_ended_runs(standing, snapshot);
  take_stragglers(standing, snapshot, plan);
  take_lenders(standing, snapshot, plan);
  take_evictions(standing, snapshot, plan, outcomes, settings.spark.hold_s);
  take_advertisement(standing, plan);
  take_use(standing, snapshot, plan);
  standing.sharing = without_own_vcpus(plan);
  return standing;
}

}  // namespace berth::policies
