// SPDX-License-Identifier: Apache-2.0
#include "replay/standing.h"

#include "model/held_cause.h"
#include "policies/after.h"
#include "policies/victim.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

namespace berth::replay {

namespace {

// The kernel counts a quota in microseconds of a period, and memory.high in pages.
constexpr double kPeriod_us = 100'000;
constexpr double kLeastQuota_us = 1'000;
constexpr std::uint64_t kPage_bytes = 4096;

std::optional<double> as_written(std::optional<double> cores) {
  if (!cores) return cores;
  return std::max(std::round(std::max(*cores, 0.0) * kPeriod_us), kLeastQuota_us) / kPeriod_us;
}

std::optional<std::uint64_t> as_written(std::optional<std::uint64_t> bytes) {
  if (!bytes) return bytes;
  return *bytes / kPage_bytes * kPage_bytes;
}

// The limits that the workload's owner set, as recorded.
model::OriginalLimits limits_of_owner(const model::Workload& recorded) {
  model::OriginalLimits owner{recorded.cpu_quota_cores, recorded.memory_high_bytes};
  if (!recorded.original) return owner;
  if (recorded.held_cpu) owner.cpu_quota_cores = recorded.original->cpu_quota_cores;
  if (recorded.held_memory) owner.memory_high_bytes = recorded.original->memory_high_bytes;
  return owner;
}

// Takes what the recorded berth held off the workload.
void strip(model::Workload& workload) {
  const model::OriginalLimits owner = limits_of_owner(workload);
  workload.cpus = {};
  workload.shares = false;
  workload.pinned_at.reset();
  workload.memory_nodes = {};
  if (!workload.fixed.cpu_idle) workload.cpu_idle = false;
  workload.cpu_quota_cores = owner.cpu_quota_cores;
  workload.memory_high_bytes = owner.memory_high_bytes;
  workload.original.reset();
  workload.held_cpu.reset();
  workload.held_memory.reset();
  workload.evicted_at.reset();
}

void put_run_on(const StandingRun& run, model::Workload& workload) {
  workload.cpus = run.cpus;
  workload.pinned_at = run.pinned_at;
  workload.memory_nodes = run.memory_nodes;
  workload.cpu_idle = workload.cpu_idle || run.cpu_idle;
  workload.evicted_at = run.evicted_at;
  if (!run.cpu_quota && !run.memory_high) return;
  workload.original = model::OriginalLimits{workload.cpu_quota_cores, workload.memory_high_bytes};
  if (run.cpu_quota) {
    workload.cpu_quota_cores = run.cpu_quota->value;
    workload.original->cpu_quota_cores = run.cpu_quota->original;
    workload.held_cpu = run.cpu_quota->held;
  }
  if (run.memory_high) {
    workload.memory_high_bytes = run.memory_high->value;
    workload.original->memory_high_bytes = run.memory_high->original;
    workload.held_memory = run.memory_high->held;
  }
}

// Sets the limit that an action asks for. A value equal to the original is no longer held. Rounding could
// change the original, whose period need not be kPeriod_us.
template <typename T>
void set_limit(std::optional<StandingLimit<T>>& limit, std::optional<T> wanted, std::optional<T> present,
               model::HeldCause cause, double now) {
  const std::optional<T> value = as_written(wanted);
  const std::optional<T> original = limit ? limit->original : present;
  if (wanted == original || value == original) {
    limit.reset();
    return;
  }
  const double since = limit ? limit->held.since : now;
  limit = StandingLimit<T>{value, original, {cause, since, now}};
}

}  // namespace

Standing::Standing(const model::Snapshot& recorded)
    : eviction_ended_at_(recorded.eviction_ended_at), remembered_(model::standing_in(recorded)) {
  for (const model::Workload& workload : recorded.workloads) {
    const bool idle = workload.cpu_idle && !workload.fixed.cpu_idle;
    const bool held = !workload.cpus.empty() || !workload.memory_nodes.empty() || idle || workload.held_cpu ||
                      workload.held_memory || workload.evicted_at;
    if (!held) continue;
    StandingRun& run = run_of(workload);
    run.cpus = workload.cpus;
    run.pinned_at = workload.pinned_at;
    run.memory_nodes = workload.memory_nodes;
    run.cpu_idle = idle;
    const model::OriginalLimits owner = limits_of_owner(workload);
    if (workload.held_cpu)
      run.cpu_quota = {workload.cpu_quota_cores, owner.cpu_quota_cores, *workload.held_cpu};
    if (workload.held_memory)
      run.memory_high = {workload.memory_high_bytes, owner.memory_high_bytes, *workload.held_memory};
    // An eviction that the recorded berth had begun goes on in the recording.
    run.evicted_at = workload.evicted_at;
    run.gone_at = std::numeric_limits<double>::infinity();
  }
}

StandingRun& Standing::run_of(const model::Workload& workload) {
  StandingRun& run = runs_[workload.id];
  if (run.created != workload.created) run = {};
  run.created = workload.created;
  return run;
}

bool Standing::is_gone(const model::Workload& workload, double now) const {
  const auto run = runs_.find(workload.id);
  return run != runs_.end() && run->second.created == workload.created && run->second.evicted_at &&
         now >= run->second.gone_at;
}

// Of runs that the recording has no more, nothing is held. An evicted one has ended then, or earlier by its
// eviction.
void Standing::forget_ended_runs(const model::Snapshot& recorded) {
  auto workload = recorded.workloads.begin();
  for (auto run = runs_.begin(); run != runs_.end();) {
    while (workload != recorded.workloads.end() && workload->id < run->first) ++workload;
    const bool lives = workload != recorded.workloads.end() && workload->id == run->first &&
                       workload->created == run->second.created;
    if (!lives && run->second.evicted_at) note_eviction_end(std::min(recorded.time, run->second.gone_at));
    run = lives ? std::next(run) : runs_.erase(run);
  }
}

void Standing::note_eviction_end(double at) {
  if (!eviction_ended_at_ || at > *eviction_ended_at_) eviction_ended_at_ = at;
}

void Standing::remove_gone(model::Snapshot& seen) {
  std::set<std::string> gone;
  for (const model::Workload& workload : seen.workloads) {
    if (!is_gone(workload, seen.time)) continue;
    gone.insert(workload.id);
    seen.memory.available_bytes =
        std::min(seen.memory.total_bytes, seen.memory.available_bytes + policies::memory_in_use(workload));
    note_eviction_end(runs_.at(workload.id).gone_at);
  }
  if (gone.empty()) return;
  std::erase_if(seen.workloads, [&](const model::Workload& workload) { return gone.contains(workload.id); });
  auto gpus = seen.topology.gpus();
  for (model::Gpu& gpu : gpus) {
    if (gpu.holder && gone.contains(*gpu.holder)) gpu.holder.reset();
  }
  if (gpus != seen.topology.gpus()) (void)seen.topology.set_gpus(std::move(gpus));  // they were legal before
}

void Standing::put_on(const model::Snapshot& recorded, model::Snapshot& seen) {
  forget_ended_runs(recorded);
  seen = recorded;
  auto run = runs_.begin();
  for (model::Workload& workload : seen.workloads) {
    strip(workload);
    while (run != runs_.end() && run->first < workload.id) ++run;
    if (run != runs_.end() && run->first == workload.id) put_run_on(run->second, workload);
    workload.shares = !workload.cpus.empty() && remembered_.sharing.contains(workload.id);
  }
  remove_gone(seen);
  seen.eviction_ended_at = eviction_ended_at_;
  model::put_on(remembered_, seen);
  if (!room_known_) return;
  for (model::PendingWorkload& pending : seen.pending) {
    const auto room = room_.find(pending.id);
    pending.room_cpu_cores = room != room_.end() ? room->second.cpu_cores : 0;
    pending.room_memory_bytes = room != room_.end() ? room->second.memory_bytes : 0;
  }
}

void Standing::change_limits(const model::Plan& plan, const model::Action& action,
                             const model::Workload& workload) {
  StandingRun& run = run_of(workload);
  if (action.attribute() == model::Attribute::cpus) {
    const auto* cpus = action.sets<model::CpuSet>();
    run.cpus = cpus != nullptr ? *cpus : model::CpuSet();
    run.pinned_at = cpus != nullptr ? std::optional(plan.time) : std::nullopt;
  } else if (action.attribute() == model::Attribute::memory_nodes) {
    const auto* bound = action.sets<model::MemoryNodes>();
    run.memory_nodes = bound != nullptr ? bound->nodes : model::CpuSet();
  } else if (action.attribute() == model::Attribute::cpu_idle) {
    run.cpu_idle = action.sets<model::IdlePriority>() != nullptr;
  } else if (const auto* quota = action.sets<model::CpuQuota>()) {
    const auto before = run.cpu_quota ? std::optional(run.cpu_quota->held.cause) : std::nullopt;
    set_limit(run.cpu_quota, quota->cores, workload.cpu_quota_cores,
              model::held_cause(plan, &workload, workload.id, model::Resource::cpu, before), plan.time);
  } else if (const auto* high = action.sets<model::MemoryHigh>()) {
    const auto before = run.memory_high ? std::optional(run.memory_high->held.cause) : std::nullopt;
    set_limit(run.memory_high, high->bytes, workload.memory_high_bytes,
              model::held_cause(plan, &workload, workload.id, model::Resource::memory, before), plan.time);
  }
}

void Standing::evict(const model::Evict& action, const model::Workload& workload, double now) {
  StandingRun& run = run_of(workload);
  if (run.evicted_at) return;
  run.evicted_at = now;
  run.gone_at = now + action.grace_s;
}

void Standing::take(const model::Plan& plan, const model::Snapshot& seen,
                    const policies::PolicySettings& settings) {
  for (const model::Action& action : plan.actions) {
    const std::string* id = action.workload();
    const model::Workload* workload = id != nullptr ? find_workload(seen, *id) : nullptr;
    if (workload == nullptr) continue;  // an advertisement, or a pending one
    if (const auto* eviction = std::get_if<model::Evict>(&action.what)) {
      evict(*eviction, *workload, plan.time);
    } else {
      change_limits(plan, action, *workload);
    }
  }
  remembered_ = policies::after(std::move(remembered_), seen, plan, policies::all_of(plan), settings);
  if (!plan.findings.straggler) return;
  room_ = plan.findings.straggler->room;
  room_known_ = true;
}

}  // namespace berth::replay
