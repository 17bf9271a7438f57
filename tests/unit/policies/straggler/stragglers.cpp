// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/straggler/stragglers.h"

#include "model/json.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace berth::policies::testing {

namespace {

model::HeldCause cause_of(const model::Plan& plan, const model::Workload& workload, bool cpu) {
  const auto lifts = [&](const model::WorkloadFinding& finding) { return finding.workload == workload.id; };
  if (cpu && plan.findings.quota && std::ranges::any_of(plan.findings.quota->lifted, lifts))
    return model::HeldCause::lifted;
  for (const model::LimitMove& move : plan.findings.straggler->moves) {
    const bool same = cpu ? move.amount.cpu_cores > 0 : move.amount.memory_bytes > 0;
    if (move.workload != workload.id || !same) continue;
    const auto& before = cpu ? workload.held_cpu : workload.held_memory;
    const bool was_preempted = before && before->cause == model::HeldCause::preempted;
    if (move.kind == model::LimitMove::Kind::preempt || was_preempted) return model::HeldCause::preempted;
    if (move.kind == model::LimitMove::Kind::reclaim) return model::HeldCause::lent;
    // On the way back it stays held for what it was held for.
    if (before && before->cause != model::HeldCause::lifted) return before->cause;
  }
  return model::HeldCause::extended;
}

void remember(const model::Plan& plan, model::Workload& workload, bool cpu, double now, bool back) {
  auto& held = cpu ? workload.held_cpu : workload.held_memory;
  if (back) {
    held.reset();
    return;
  }
  const model::HeldCause cause = cause_of(plan, workload, cpu);
  held = model::HeldLimit{.cause = cause, .since = held ? held->since : now, .changed_at = now};
}

}  // namespace

model::Workload task(const std::string& id, double quota, double deadline, const Points& reports) {
  model::Workload workload;
  workload.id = workload.service = id;
  workload.workload_class = model::WorkloadClass::latency_sensitive;
  workload.isolation = model::Isolation::vcpus;
  workload.cpu_quota_cores = quota;
  workload.deadline = deadline;
  for (const auto& [time, fraction] : reports) workload.progress.push_back({time, fraction});
  return workload;
}

model::Workload late_task(const std::string& id, double quota) {
  return task(id, quota, 1300, {{700, 0.3}, {800, 0.5}, {900, 0.5}, {1000, 0.6}});
}

model::Workload late_and_pinned(const std::string& id, const std::string& cpulist) {
  model::Workload workload = pinned(late_task(id, 1), cpulist);
  workload.cpu_quota_cores.reset();
  workload.vcpus = static_cast<int>(workload.cpus.size());
  return workload;
}

model::Workload good_task(const std::string& id, double quota) {
  return task(id, quota, 1300, {{700, 0.3}, {800, 0.4}, {900, 0.5}, {1000, 0.7}});
}

model::Workload batch(const std::string& id, std::optional<double> quota, double cores) {
  model::Workload workload = best_effort(id, cores);
  workload.cpu_quota_cores = quota;
  return workload;
}

model::Workload with_memory(model::Workload workload, std::optional<std::uint64_t> high, std::uint64_t use) {
  workload.memory_high_bytes = high;
  change_samples(workload, [use](auto& samples) {
    if (samples.empty()) samples.emplace_back();
    for (model::UsageSample& sample : samples) sample.memory_bytes = use;
  });
  return workload;
}

model::PendingWorkload pending(const std::string& id, int vcpus) {
  model::PendingWorkload request;
  request.isolation = model::Isolation::vcpus;
  request.id = request.service = id;
  request.vcpus = vcpus;
  return request;
}

model::Workload held(model::Workload workload, model::HeldCause cause, std::optional<double> original_quota,
                     double age) {
  workload.original = model::OriginalLimits{original_quota, workload.memory_high_bytes};
  workload.held_cpu = model::HeldLimit{cause, 1000 - age, 1000 - age};
  return workload;
}

std::vector<std::string> limits(const std::vector<model::Action>& actions) {
  std::vector<std::string> list;
  for (const model::Action& action : actions) {
    if (const auto* quota = action.sets<model::CpuQuota>()) {
      list.push_back(quota->cores ? fmt::format("{}={:.6g}", *action.workload(), *quota->cores)
                                  : *action.workload() + "=none");
    } else if (const auto* high = action.sets<model::MemoryHigh>()) {
      list.push_back(high->bytes ? fmt::format("{}={}", *action.workload(), *high->bytes)
                                 : *action.workload() + "=none");
    }
  }
  return list;
}

std::vector<std::string> moves(const model::StragglerFindings& findings) {
  std::vector<std::string> list;
  for (const model::LimitMove& move : findings.moves) {
    const double amount =
        move.amount.memory_bytes > 0 ? static_cast<double>(move.amount.memory_bytes) : move.amount.cpu_cores;
    list.push_back(fmt::format("{} {} {:.6g}", model::to_string(move.kind), move.workload, amount));
  }
  return list;
}

void carry_out(const model::Plan& plan, model::Snapshot& snapshot) {
  std::map<std::string, model::Workload*> by_id;
  for (model::Workload& workload : snapshot.workloads) by_id[workload.id] = &workload;
  for (const model::Action& action : plan.actions) {
    if (action.workload() == nullptr) continue;
    model::Workload& workload = *by_id.at(*action.workload());
    if (const auto* pin = action.sets<model::CpuSet>()) {
      workload.cpus = *pin;
      workload.pinned_at = snapshot.time;
    } else if (action.gives_back(model::Attribute::cpus)) {
      workload.cpus = {};
      workload.pinned_at = snapshot.time;
    } else {
      if (!workload.original)
        workload.original = model::OriginalLimits{workload.cpu_quota_cores, workload.memory_high_bytes};
      if (const auto* quota = action.sets<model::CpuQuota>()) {
        remember(plan, workload, true, snapshot.time, quota->cores == workload.original->cpu_quota_cores);
        workload.cpu_quota_cores = quota->cores;
      } else if (const auto* high = action.sets<model::MemoryHigh>()) {
        remember(plan, workload, false, snapshot.time, high->bytes == workload.original->memory_high_bytes);
        workload.memory_high_bytes = high->bytes;
      }
    }
  }
  for (const auto& [id, task] : plan.findings.straggler->tasks) {
    if (!task.straggler) continue;
    by_id.at(id)->straggled_at = snapshot.time;
    snapshot.straggler_seen_at = snapshot.time;
  }
  for (model::PendingWorkload& pending : snapshot.pending) {
    const auto room = plan.findings.straggler->room.find(pending.id);
    if (room == plan.findings.straggler->room.end()) continue;
    pending.room_cpu_cores = room->second.cpu_cores;
    pending.room_memory_bytes = room->second.memory_bytes;
  }
  for (const model::LimitMove& move : plan.findings.straggler->moves) {
    if (move.kind == model::LimitMove::Kind::recall) by_id.at(move.workload)->pressed_at = snapshot.time;
  }
}

}  // namespace berth::policies::testing
