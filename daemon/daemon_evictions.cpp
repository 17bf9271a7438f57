// SPDX-License-Identifier: Apache-2.0
// Workloads that are to end: by hand, by the plan, and what becomes of them between ticks.
#include "daemon/daemon.h"
#include "policies/decision_id.h"

#include <iterator>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

using model::ErrorKind;

model::Result<std::string> Daemon::evict(const std::string& id) {
  take_changes();  // a run that has just begun is not the one before
  const auto found = observer_->found().find(id);
  if (found == observer_->found().end()) {
    return model::fail(ErrorKind::gone,
                       fmt::format("\"{}\": there is no such workload; `berthctl list` shows them", id));
  }
  if (!enforcer_) {
    return model::fail(ErrorKind::refused,
                       fmt::format("berth is in observe mode and changes nothing, so {} is not evicted; "
                                   "`berthctl mode enforce` first",
                                   id));
  }
  const auto& target = found->second;
  if (const auto left = unmanaged().find(id); left != unmanaged().end()) {
    return model::fail(ErrorKind::refused, fmt::format("{} is left alone: {}", id, left->second.reason));
  }
  model::Workload workload = fresh_workload(target.identity);
  if (!target.leaf_of.empty())
    overrides_->apply_to_leaf(workload, target.leaf_of, observer_->cgroup_id(target.leaf_of));
  overrides_->apply(workload, target.cgroup->id());
  model::EvictAction eviction{.workload = id, .grace_s = settings_.policies.spark.grace_s};
  if (const auto* known = find_workload(observer_->snapshot(), id)) {
    workload.spark = known->spark;
    workload.spared = known->spared;
    if (!known->usage.empty()) eviction.frees_bytes = known->usage.back().memory_bytes.value_or(0);
  }
  if (workload.spark && workload.spark->role == model::SparkRole::executor) {
    eviction.how = model::EvictionStep::decommission;
  }
  const double now = clock_.now();
  model::Action action{
      .what = eviction, .policy = kByHand, .decision = {}, .reason = "requested by an operator"};
  action.decision = policies::decision_id(now, action);
  auto entries = evictor_.begin(target, workload, action, now);
  if (!entries && entries.error().kind() == ErrorKind::transient)
    return model::fail(ErrorKind::refused, entries.error().message());
  if (!entries) return model::fail(entries.error());
  drop_documents();
  publish(*entries);
  eviction_timer_.arm(evictor_.due_s());
  if (!entries->empty() && entries->front().result == "failed" && !evictor_.due_s()) {
    return model::fail(ErrorKind::refused, entries->front().error.value_or("the eviction failed"));
  }
  return action.decision;
}

std::vector<LogEntry> Daemon::carry_out_evictions(double now) {
  std::vector<LogEntry> entries;
  // Memory was read before a victim was seen to have ended: the next tick knows what came of it.
  if (evictor_.marks().ended_at == now) {
    eviction_timer_.arm(evictor_.due_s());
    return entries;
  }
  for (const auto& action : plan_.actions) {
    if (!std::holds_alternative<model::EvictAction>(action.what)) continue;
    const auto target = observer_->found().find(*action.workload());
    const auto* workload = find_workload(observer_->snapshot(), *action.workload());
    if (target == observer_->found().end() || workload == nullptr) continue;
    auto begun = evictor_.begin(target->second, *workload, action, now);
    if (begun) {
      std::move(begun->begin(), begun->end(), std::back_inserter(entries));
      continue;
    }
    LogEntry entry = entry_of(action, now, kEnforce);
    entry.result = begun.error().kind() == ErrorKind::gone ? "gone" : "failed";
    entry.error = begun.error().message();
    // The next plan must choose another workload.
    if (begun.error().kind() != ErrorKind::gone && begun.error().kind() != ErrorKind::transient)
      evictor_.spare(target->second);
    entries.push_back(std::move(entry));
  }
  eviction_timer_.arm(evictor_.due_s());
  return entries;
}

std::vector<LogEntry> Daemon::let_go_of_spared(double now) {
  std::vector<LogEntry> entries;
  for (const model::Workload& workload : observer_->snapshot().workloads) {
    if (!workload.evicted_at) continue;
    const bool sensitive = workload.workload_class == model::WorkloadClass::latency_sensitive;
    if (!sensitive && !workload.fixed.life) continue;
    auto left =
        evictor_.let_go(workload.id, now, sensitive ? "it is latency-sensitive now" : "it is left alone now");
    std::move(left.begin(), left.end(), std::back_inserter(entries));
  }
  return entries;
}

void Daemon::watch_evictions(sd_event* event) {
  eviction_timer_.attach(event, [this] { advance_evictions(); });
  eviction_timer_.arm(evictor_.due_s());
}

void Daemon::advance_evictions() {
  const auto entries = evictor_.advance(clock_.now());
  if (!entries.empty()) {
    drop_documents();
    publish(entries);
  }
  eviction_timer_.arm(evictor_.due_s());
}

}  // namespace berth::daemon
