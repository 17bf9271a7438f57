// SPDX-License-Identifier: Apache-2.0
#include "policies/explain.h"

#include "model/path.h"
#include "policies/level.h"
#include "policies/share.h"
#include "policies/usage.h"
#include "policies/vcpus/pressure.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::WorkloadExplanation;

// Finds the workload, or the future one of a pending request; false where there is neither.
bool find(const model::Snapshot& snapshot, const std::string& id, WorkloadExplanation& explained) {
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.id != id) continue;
    if (!workload.usage.empty()) {
      explained.mean_cores = mean_cores(workload);
      explained.memory_bytes = workload.usage.back().memory_bytes;
    }
    explained.workload = workload;
    explained.workload.usage.clear();
    return true;
  }
  for (const model::PendingWorkload& pending : snapshot.pending) {
    if (pending.id != id) continue;
    explained.pending = true;
    explained.workload.id = id;
    explained.workload.service = pending.service;
    explained.workload.workload_class = pending.workload_class;
    explained.workload.vcpus = pending.vcpus;
    explained.workload.isolation = pending.isolation;
    explained.workload.memory_request_bytes = pending.memory_request_bytes;
    return true;
  }
  return false;
}

std::optional<std::string> reason_for(const std::vector<model::WorkloadFinding>& findings,
                                      const std::string& id) {
  for (const model::WorkloadFinding& finding : findings) {
    if (finding.workload == id) return finding.reason;
  }
  return std::nullopt;
}

template <typename T>
std::optional<T> value_for(const std::map<std::string, T>& by_id, const std::string& id) {
  const auto found = by_id.find(id);
  return found == by_id.end() ? std::nullopt : std::optional(found->second);
}

std::vector<const model::Workload*> by_id(const model::Snapshot& snapshot) {
  std::vector<const model::Workload*> workloads;
  for (const model::Workload& workload : snapshot.workloads) workloads.push_back(&workload);
  std::sort(workloads.begin(), workloads.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  return workloads;
}

void add_interference(const model::Snapshot& snapshot, const model::InterferenceFindings& findings,
                      const InterferenceSettings& settings, WorkloadExplanation& explained) {
  const model::Workload& workload = explained.workload;
  if (workload.workload_class == model::WorkloadClass::latency_sensitive)
    explained.isolation = isolation_of(workload, settings);
  explained.shared = value_for(findings.shared, workload.id);
  explained.unplaceable = reason_for(findings.unplaceable, workload.id);
  explained.unconfined = reason_for(findings.unconfined, workload.id);
  for (const model::ServiceWarning& warning : findings.warnings) {
    if (warning.workload == workload.id) explained.warnings.push_back(warning);
  }
  explained.waiting = value_for(findings.waiting, workload.id);
  if (workload.workload_class == model::WorkloadClass::best_effort) {
    explained.pool = findings.best_effort;
    if (const auto* group = model::group_of(snapshot, workload.id)) explained.group = *group;
  }
  auto instance = value_for(findings.instances, workload.id);
  if (!instance) return;
  auto pressures = service_pressures(snapshot, by_id(snapshot));
  explained.pin = {.instance = std::move(*instance),
                   .coefficients = choose_model(snapshot, workload.service, settings.default_model).model,
                   .pressure_source = pressures[workload.service].source,
                   .search_reason = findings.search_reason};
}

bool is_taking(model::LimitMove::Kind kind) {
  return kind == model::LimitMove::Kind::reclaim || kind == model::LimitMove::Kind::preempt;
}

void add_straggler(const model::StragglerFindings& findings, WorkloadExplanation& explained) {
  const std::string& id = explained.workload.id;
  explained.task = value_for(findings.tasks, id);
  explained.redundant = value_for(findings.redundant, id);
  explained.keeping = value_for(findings.keeping, id);
  explained.idle = findings.idle;
  for (const model::Relocation& relocation : findings.relocate) {
    if (relocation.workload == id) explained.lacks = relocation.lacks;
  }
  const bool helped = explained.task && explained.task->granted != model::Resources{};
  for (const model::LimitMove& move : findings.moves) {
    if (move.workload == id || (helped && is_taking(move.kind))) explained.moves.push_back(move);
  }
}

bool is_grown(const WorkloadExplanation& explained) {
  const model::Workload& workload = explained.workload;
  if (is_growth(workload.held_cpu) || is_growth(workload.held_memory)) return true;
  return explained.task && (explained.task->vcpus || explained.task->granted != model::Resources{});
}

void add_quota(const model::QuotaFindings& findings, WorkloadExplanation& explained) {
  explained.lifted = reason_for(findings.lifted, explained.workload.id);
  explained.bursting = reason_for(findings.bursting, explained.workload.id);
}

// Taken shares form one pool without fixed recipients. So this lists all shares held for stragglers, by their
// payers.
void add_payers(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                WorkloadExplanation& explained) {
  if (!is_grown(explained)) return;
  for (const model::Workload* workload : by_id(snapshot)) {
    if (workload->workload_class != model::WorkloadClass::best_effort) continue;
    for (const model::Resource resource : {model::Resource::cpu, model::Resource::memory}) {
      const double capacity = capacity_of(snapshot, settings, resource);
      const Share share = share_of(*workload, resource, capacity);
      const double amount = distance_from_original(share, capacity);
      if (!share.held || is_growth(share.held) || amount <= kNothing) continue;
      model::Payer payer{.workload = workload->id, .held = *share.held, .amount = {}};
      add(payer.amount, resource, amount);
      explained.payers.push_back(std::move(payer));
    }
  }
}

// Of a group of other work. nullopt also if no instance owns vCPUs.
std::optional<model::WorkloadFinding> explain_other(const model::Snapshot& snapshot, const model::Plan& plan,
                                                    const std::string& subject) {
  if (!plan.findings.interference) return std::nullopt;
  const model::OtherWork& others = plan.findings.interference->others;
  for (const model::WorkloadFinding& left : others.unconfined) {
    if (model::names(subject, left.workload))
      return model::WorkloadFinding{left.workload, "it may run on vCPUs that instances own: " + left.reason};
  }
  for (const std::string& id : others.confined) {
    if (!model::names(subject, id)) continue;
    const model::OtherGroup* group = find_other(snapshot, id);
    const bool stands = group != nullptr && group->held;
    return model::WorkloadFinding{
        id, fmt::format("no rule names it, so it is kept off vCPUs that instances own: it {} {}",
                        stands ? "may use" : "is to use", (stands ? *group->held : others.cpus).to_string())};
  }
  return std::nullopt;
}

std::optional<model::ApplicationExplanation> explain_application(const model::EvictionFindings& findings,
                                                                 const std::string& id) {
  auto figures = value_for(findings.apps, id);
  if (!figures) return std::nullopt;
  model::ApplicationExplanation explained{
      .id = id, .figures = *figures, .delta = findings.delta, .workloads = {}};
  for (const std::string& workload : findings.order) {
    const auto candidate = findings.candidates.find(workload);
    if (candidate != findings.candidates.end() && candidate->second.app == id)
      explained.workloads.push_back(workload);
  }
  return explained;
}

void add_eviction(const model::EvictionFindings& findings, WorkloadExplanation& explained) {
  const std::string& id = explained.workload.id;
  model::EvictionExplanation eviction{.candidate = value_for(findings.candidates, id),
                                      .spared = value_for(findings.spared, id),
                                      .candidates = findings.order.size(),
                                      .memory = findings.reason};
  if (!eviction.candidate && !eviction.spared) return;
  const auto place = std::find(findings.order.begin(), findings.order.end(), id);
  if (place != findings.order.end())
    eviction.position = static_cast<std::size_t>(place - findings.order.begin()) + 1;
  eviction.victim = std::any_of(findings.victims.begin(), findings.victims.end(),
                                [&](const model::MemoryTaken& taken) { return taken.workload == id; });
  explained.eviction = std::move(eviction);
  if (explained.workload.spark)
    explained.application = explain_application(findings, explained.workload.spark->app);
}

}  // namespace

std::optional<WorkloadExplanation> explain_workload(const model::Snapshot& snapshot, const model::Plan& plan,
                                                    const PolicySettings& settings, const std::string& id) {
  WorkloadExplanation explained;
  if (!find(snapshot, id, explained)) return std::nullopt;
  explained.left_alone = explained.workload.left_alone;
  if (plan.findings.interference) {
    add_interference(snapshot, *plan.findings.interference, settings.interference, explained);
  }
  if (plan.findings.straggler) add_straggler(*plan.findings.straggler, explained);
  if (plan.findings.quota) add_quota(*plan.findings.quota, explained);
  if (plan.findings.eviction) add_eviction(*plan.findings.eviction, explained);
  add_payers(snapshot, settings.interference, explained);
  for (const model::Action& action : plan.actions) {
    if (action.workload() != nullptr && *action.workload() == id) explained.actions.push_back(action);
  }
  return explained;
}

model::Explanation explain(const model::Snapshot& snapshot, const model::Plan& plan,
                           const PolicySettings& settings, const std::string& subject) {
  model::Explanation explanation{.host = snapshot.host,
                                 .time = snapshot.time,
                                 .wall_ahead_s = snapshot.wall_ahead_s,
                                 .decision = {},
                                 .workload = {},
                                 .application = {}};
  explanation.workload = explain_workload(snapshot, plan, settings, subject);
  if (explanation.workload) return explanation;
  if (plan.findings.eviction) explanation.application = explain_application(*plan.findings.eviction, subject);
  if (explanation.application) return explanation;
  explanation.other = explain_other(snapshot, plan, subject);
  if (explanation.other) return explanation;
  for (const model::Action& action : plan.actions) {
    if (action.decision != subject) continue;
    explanation.decision = model::DecisionExplanation{
        .id = subject, .planned = action, .planned_at = plan.time, .present = true};
    if (const auto* id = action.workload()) {
      explanation.workload = explain_workload(snapshot, plan, settings, *id);
    }
    break;
  }
  return explanation;
}

}  // namespace berth::policies
