// SPDX-License-Identifier: Apache-2.0
// The steps of a tick that change the host. Evictions go on between ticks.
#include "daemon/enforcement.h"
#include "daemon/ledger/action_entries.h"
#include "os/clock.h"
#include "policies/decision_id.h"
#include "policies/interrupts.h"
#include "policies/vcpus/pool.h"

#include <utility>
#include <variant>

#include <fmt/core.h>

namespace berth::daemon {

using model::ErrorKind;

namespace {

// Share of the tick's interval that changing cgroups may take; the rest waits for the next tick.
constexpr double kApplyShare = 0.5;

}  // namespace

std::vector<LogEntry> Enforcement::follow(double now) {
  // Only workloads that came, went or changed since the last call can have lost their holdings.
  if (std::exchange(followed_, observer_.generation()) == observer_.generation()) return {};
  return enforcer_->follow(observer_.found(), now);
}

std::vector<LogEntry> Enforcement::check(double now) {
  return enforcer_->check(observer_.readings(), observer_.found(), observer_.groups(), observer_.others(),
                          setup_.settings.foreign_writer, now);
}

std::vector<LogEntry> Enforcement::advance(double now) {
  evictor_.forget_departed(observer_.found());
  return evictor_.advance(now);
}

// Victims that became latency-sensitive since, and work that is left alone since.
std::vector<LogEntry> Enforcement::let_go_of_spared(double now) {
  std::vector<LogEntry> entries;
  for (const model::Workload& workload : observer_.snapshot().workloads) {
    if (workload.left_alone) append(entries, enforcer_->let_go(workload.id, now, *workload.left_alone));
    if (!workload.evicted_at) continue;
    const bool sensitive = workload.workload_class == model::WorkloadClass::latency_sensitive;
    if (!sensitive && !workload.fixed.life) continue;
    append(entries, evictor_.let_go(workload.id, now,
                                    sensitive ? "it is latency-sensitive now" : "it is left alone now"));
  }
  return entries;
}

void Enforcement::drop_refused(model::Plan& plan) {
  std::erase_if(plan.actions, [this](const model::Action& action) { return enforcer_->refuses(action); });
}

std::vector<LogEntry> Enforcement::evict(const model::Plan& plan, double now, policies::Outcomes& outcomes) {
  std::vector<LogEntry> entries;
  // Memory was read before a victim was seen to have ended: the next tick knows what came of it.
  const bool wait = evictor_.marks().ended_at == now;
  for (const auto& action : plan.actions) {
    if (wait || !std::holds_alternative<model::Evict>(action.what)) continue;
    const auto target = observer_.found().find(*action.workload());
    const auto* workload = find_workload(observer_.snapshot(), *action.workload());
    if (target == observer_.found().end() || workload == nullptr) continue;
    // It ends already, with another container of its pod.
    const auto* mark = evictor_.marks().of(workload->id, target->second.cgroup->id());
    if (mark != nullptr && mark->evicted_at) continue;
    auto begun = evictor_.begin(target->second, *workload, action, now, observer_.found());
    if (begun) {
      outcomes.evicted.insert(workload->id);
      append(entries, std::move(*begun));
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

std::vector<LogEntry> Enforcement::apply(const model::Plan& plan, Enforcer::Extent extent) {
  const std::chrono::milliseconds budget(static_cast<int>(setup_.settings.tick_s * kApplyShare * 1000));
  return enforcer_->apply(plan, observer_.snapshot(), observer_.found(), observer_.groups(),
                          observer_.others(), budget, extent);
}

std::vector<LogEntry> Enforcement::move_interrupts(const model::Plan& plan, double now) {
  const model::Snapshot& snapshot = observer_.snapshot();
  const auto owned = moves_interrupts() ? policies::owned_by_instances(plan, snapshot) : model::CpuSet();
  return interrupts_->follow(owned, policies::of_any_owner(snapshot.owned_cpus), snapshot.topology, now);
}

std::vector<LogEntry> Enforcement::divide(double now) {
  const auto* seen = observer_.latest_spark();
  if (!makes_leaves() || seen == nullptr) return {};
  auto entries = leaves_.tick(
      {.seen = *seen, .found = observer_.found(), .snapshot = observer_.snapshot(), .holdings = holdings()},
      now);
  if (leaves_.take_moved()) senses_.look_for_spark_again();
  observer_.set_leaf_problems(leaves_.problems());
  return entries;
}

model::Result<std::string> Enforcement::evict_by_hand(const cgroup::FoundWorkload& target,
                                                      const Overrides& overrides) {
  const std::string& id = target.identity.id;
  if (!enforcer_) {
    return model::fail(ErrorKind::refused,
                       fmt::format("berth is in observe mode and changes nothing, so {} is not evicted; "
                                   "`berthctl mode enforce` first",
                                   id));
  }
  if (const auto left = left_alone().find(id); left != left_alone().end()) {
    return model::fail(ErrorKind::refused, fmt::format("{} is left alone: {}", id, left->second.reason));
  }
  model::Workload workload = fresh_workload(target.identity);
  if (!target.leaf_of.empty())
    overrides.apply_to_leaf(workload, target.leaf_of, observer_.cgroup_id(target.leaf_of));
  overrides.apply(workload, target.cgroup->id());
  model::Evict eviction{.workload = id, .grace_s = setup_.settings.policies.eviction.grace_s};
  if (const auto* known = find_workload(observer_.snapshot(), id)) {
    workload.spark = known->spark;
    workload.spared = known->spared;
    if (!known->usage.empty()) eviction.frees_bytes = known->usage.back().memory_bytes.value_or(0);
  }
  if (workload.spark && workload.spark->role == model::SparkRole::executor) {
    eviction.how = model::EvictionStep::decommission;
  }
  const double now = setup_.clock.now();
  model::Action action{
      .what = eviction, .policy = kByHand, .decision = {}, .reason = "requested by an operator"};
  action.decision = policies::decision_id(now, action);
  const auto entries = evictor_.begin(target, workload, action, now, observer_.found());
  if (!entries && entries.error().kind() == ErrorKind::transient)
    return model::fail(ErrorKind::refused, entries.error().message());
  if (!entries) return model::fail(entries.error());
  publish_(*entries);
  eviction_timer_.arm(evictor_.due_s());
  if (!entries->empty() && entries->front().result == "failed" && !evictor_.due_s()) {
    return model::fail(ErrorKind::refused, entries->front().error.value_or("the eviction failed"));
  }
  return action.decision;
}

std::vector<LogEntry> Enforcement::let_go(const std::string& id, const std::string& reason) {
  return evictor_.let_go(id, setup_.clock.now(), reason);
}

void Enforcement::watch_evictions(sd_event* event) {
  eviction_timer_.attach(event, [this] { advance_between_ticks(); });
  eviction_timer_.arm(evictor_.due_s());
}

void Enforcement::advance_between_ticks() {
  if (const auto entries = evictor_.advance(setup_.clock.now()); !entries.empty()) publish_(entries);
  eviction_timer_.arm(evictor_.due_s());
}

}  // namespace berth::daemon
