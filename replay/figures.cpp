// SPDX-License-Identifier: Apache-2.0
#include "replay/figures.h"

#include "policies/victim.h"
#include "replay/standing.h"

#include <algorithm>
#include <variant>

namespace berth::replay {

namespace {

// The price of an eviction, by the findings of the policy that decided it.
double price_of(const model::Plan& plan, const model::Action& action, const model::Workload& workload) {
  if (action.policy == "oversell" && plan.findings.oversell) {
    const auto candidate = plan.findings.oversell->candidates.find(workload.id);
    if (candidate != plan.findings.oversell->candidates.end()) return candidate->second.cost;
  }
  if (plan.findings.eviction) {
    const auto candidate = plan.findings.eviction->candidates.find(workload.id);
    if (candidate != plan.findings.eviction->candidates.end()) return candidate->second.cost_s;
  }
  return policies::cpu_seconds_used(workload, plan.time);
}

// Cores by which held quotas of best-effort workloads are below the originals. Without a limit of its owner,
// the newest use stands for the original.
double withheld_cores(const model::Snapshot& seen) {
  double cores = 0;
  for (const model::Workload& workload : seen.workloads) {
    if (workload.workload_class != model::WorkloadClass::best_effort || !workload.held_cpu) continue;
    if (!workload.cpu_quota_cores || !workload.original || !workload.original->cpu_quota_cores) continue;
    cores += std::max(0.0, *workload.original->cpu_quota_cores - *workload.cpu_quota_cores);
  }
  return cores;
}

std::optional<double> advertised(const model::OversoldResource& resource,
                                 const std::optional<model::AdvertisedResource>& said) {
  if (resource.capacity <= 0) return std::nullopt;
  return resource.capacity * (said ? said->factor : resource.factor);
}

}  // namespace

void Figures::hold_until(double time) {
  const double held_s = std::clamp(time - present_->time, 0.0, kLongestTick_s);
  time_s += held_s;
  if (present_->scored) score.add(present_->score, held_s);
  straggling_s += static_cast<double>(present_->stragglers) * held_s;
  withheld_core_s += present_->withheld_cores * held_s;
  if (present_->cpu_advertised) cpu_advertised.add(*present_->cpu_advertised, held_s);
  if (present_->memory_advertised) memory_advertised.add(*present_->memory_advertised, held_s);
  if (present_->closed) closed_s += held_s;
}

void Figures::count_actions(const model::Plan& plan, const model::Snapshot& seen) {
  for (const model::Action& action : plan.actions) {
    ++actions[action.kind()];
    if (!std::holds_alternative<model::Evict>(action.what)) continue;
    const model::Workload* workload = find_workload(seen, *action.workload());
    if (workload == nullptr || workload->evicted_at) continue;
    ++evictions;
    evicted_cost_s += std::max(0.0, price_of(plan, action, *workload));
    evicted_cpu_s += policies::cpu_seconds_used(*workload, plan.time);
    evicted_bytes += policies::memory_in_use(*workload);
  }
}

void Figures::add(const model::Plan& plan, const model::Snapshot& seen) {
  if (present_) hold_until(plan.time);
  ++ticks;
  count_actions(plan, seen);
  Present now;
  now.time = plan.time;
  now.withheld_cores = replay::withheld_cores(seen);
  if (const auto& interference = plan.findings.interference) {
    now.score = interference->score_node;
    now.scored = true;
    score_highest = std::max(score_highest, now.score);
  }
  if (const auto& straggler = plan.findings.straggler) {
    for (const auto& [id, task] : straggler->tasks) {
      if (task.straggler) ++now.stragglers;
      if (!task.deadline) continue;
      if (late_by_.size() >= kMostTasks && !late_by_.contains(id)) continue;
      double& late = late_by_[id];
      if (task.finish) late = std::max(0.0, *task.finish - *task.deadline);
    }
    for (const model::Relocation& relocation : straggler->relocate) {
      if (relocations.size() < kMostTasks) relocations.insert(relocation.workload);
    }
  }
  if (const auto& oversell = plan.findings.oversell) {
    now.cpu_advertised = advertised(oversell->cpu, seen.advertised.cpu);
    now.memory_advertised = advertised(oversell->memory, seen.advertised.memory);
    now.closed = oversell->cpu.state != model::SchedulingState::schedule ||
                 oversell->memory.state != model::SchedulingState::schedule;
  }
  present_ = now;
}

void Figures::finish() {
  tasks = late_by_.size();
  late_tasks = 0;
  lateness_s = 0;
  for (const auto& [id, late] : late_by_) {
    lateness_s += late;
    if (late > 0) ++late_tasks;
  }
}

std::vector<Figure> list_figures(const Figures& figures) {
  using enum Figure::Unit;
  const auto count = [&](const char* kind) -> double {
    const auto found = figures.actions.find(kind);
    return found == figures.actions.end() ? 0 : static_cast<double>(found->second);
  };
  const bool scored = figures.score.mean().has_value();
  return {
      {"score_mean", "interference score, mean", score, figures.score.mean(), true},
      {"score_highest", "interference score, highest", score,
       scored ? std::optional(figures.score_highest) : std::nullopt, true},
      {"pins", "pins", number, count("pin"), true},
      {"unpins", "pins given up", number, count("unpin"), true},
      {"quota_changes", "changes of a CPU quota", number, count("set-cpu-quota"), true},
      {"memory_changes", "changes of a memory limit", number, count("set-memory-high"), true},
      {"node_changes", "bonds of memory to NUMA nodes", number, count("set-memory-nodes"), true},
      {"priority_changes", "changes of a CPU priority", number, count("set-cpu-priority"), true},
      {"evictions", "evictions", number, static_cast<double>(figures.evictions), true},
      {"evicted_cost_s", "evicted work, as priced", seconds, figures.evicted_cost_s, true},
      {"evicted_cpu_s", "CPU time of evicted work", core_seconds, figures.evicted_cpu_s, true},
      {"evicted_bytes", "memory freed by evictions", bytes, static_cast<double>(figures.evicted_bytes),
       false},
      {"late_tasks", "tasks late when last judged", number, static_cast<double>(figures.late_tasks), true},
      {"lateness_s", "their lateness, in all", seconds, figures.lateness_s, true},
      {"straggling_s", "time of tasks as stragglers", seconds, figures.straggling_s, true},
      {"relocations", "stragglers without help here", number, static_cast<double>(figures.relocations.size()),
       true},
      {"withheld_core_s", "CPU withheld from best-effort", core_seconds, figures.withheld_core_s, true},
      {"cpu_advertised", "CPU advertised, mean", cores, figures.cpu_advertised.mean(), false},
      {"memory_advertised", "memory advertised, mean", bytes, figures.memory_advertised.mean(), false},
      {"closed_s", "time closed for new work", seconds, figures.closed_s, true},
  };
}

}  // namespace berth::replay
