// SPDX-License-Identifier: Apache-2.0
// A plan carried out: what is set, what is taken back, and in which order.
#include "daemon/enforce/enforcer.h"
#include "daemon/ledger/action_entries.h"

#include <utility>
#include <variant>

#include <fmt/core.h>

namespace berth::daemon {

using model::Attribute;
using model::CpuSet;
using model::ErrorKind;

namespace {

// Requests handed to the writer at once: it makes as many records durable in one transaction.
constexpr std::size_t kBatchSize = 64;
// Time limit of a batch; only a hanging service manager reaches it. Far below the watchdog's limit.
constexpr std::chrono::milliseconds kBatchBudget{5000};
// The part of a tick's time in which former groups get their priority back before the plan begins. The rest
// of them follow after it.
constexpr int kPartForFormerGroups = 4;

// Whether others must wait until it has left its vCPUs. Shared ones have others on them in any case.
bool owns_vcpus(const model::Snapshot& snapshot, const std::string& id) {
  const auto* workload = find_workload(snapshot, id);
  return workload != nullptr && workload->workload_class == model::WorkloadClass::latency_sensitive &&
         !workload->shares;
}

}  // namespace

// Requests on their way to the writer. They are written together, as each durable record waits for the disk.
// A batch ends before an action that depends on the outcome of an earlier one.
struct Enforcer::Batch {
  const model::Plan& plan;
  const model::Snapshot& snapshot;
  const std::chrono::steady_clock::time_point deadline;
  std::vector<cgroup::Request> requests{};
  std::vector<LogEntry> entries{};   // of the requests
  std::vector<LogEntry> finished{};  // in the plan's order
  CpuSet moving{};                   // held by latency-sensitive workloads that `requests` move
  CpuSet stuck{};                    // held by latency-sensitive workloads whose move failed

  void request(const cgroup::FoundWorkload& target, cgroup::Value value, LogEntry entry) {
    requests.push_back({&target, std::move(value)});
    entries.push_back(std::move(entry));
  }
};

bool Enforcer::is_late(const Batch& batch) { return std::chrono::steady_clock::now() >= batch.deadline; }

std::vector<LogEntry> Enforcer::apply(const model::Plan& plan, const model::Snapshot& snapshot,
                                      const Found& found, const Groups& groups, const Others& others,
                                      std::chrono::milliseconds budget, Extent extent) {
  const auto start = std::chrono::steady_clock::now();
  Batch batch{plan, snapshot, start + budget};
  release_former_others(found, others, start + budget / kPartForFormerGroups, plan.time, batch.finished);
  release_former_groups(groups, start + 2 * budget / kPartForFormerGroups, plan.time, batch.finished);
  const auto find_target = [&](const model::Action& action) -> const cgroup::FoundWorkload* {
    if (action.attribute() == Attribute::cpu_idle) {
      const auto group = groups.find(*action.workload());
      return group == groups.end() ? nullptr : &group->second.target;
    }
    if (const auto workload = found.find(*action.workload()); workload != found.end())
      return &workload->second;
    if (action.attribute() != Attribute::cpus) return nullptr;
    const auto other = others.find(*action.workload());
    return other == others.end() ? nullptr : &other->second.target;
  };
  for (const auto& action : plan.actions) {
    const auto* id = action.workload();
    // The evictor carries out evictions.
    if (id == nullptr || refuses(action) || std::holds_alternative<model::Evict>(action.what)) continue;
    const auto* target = find_target(action);
    if (target == nullptr) {
      LogEntry entry = entry_of(action, plan.time, kEnforce);
      entry.result = "gone";
      batch.finished.push_back(std::move(entry));
      continue;
    }
    const auto attribute = action.attribute();
    const auto* cpus = action.sets<CpuSet>();
    if (attribute == Attribute::cpus && !found.contains(*id)) {
      if (grounds_.contains(*id)) continue;
      others_.insert(*id);
    }
    if (cpus != nullptr && confined_at_.contains(*id)) {
      pin_at_ground(*target, *cpus, entry_of(action, plan.time, kEnforce), batch.finished);
    } else if (cpus != nullptr) {
      pin(*target, *cpus, entry_of(action, plan.time, kEnforce), batch);
    } else if (action.gives_back(Attribute::cpus)) {
      flush(batch);
      // The next tick's plan has it again.
      if (is_late(batch)) continue;
      give_back(*target, Attribute::cpus, entry_of(action, plan.time, kEnforce), batch);
    } else if (attribute) {
      limit(*target, action, *attribute, batch);
    } else {
      LogEntry entry = entry_of(action, plan.time, kEnforce);
      entry.result = "failed";
      entry.error = fmt::format("this version of berth cannot carry out the action {}", action.kind());
      batch.finished.push_back(std::move(entry));
    }
  }
  flush(batch);
  release_former_groups(groups, batch.deadline, plan.time, batch.finished);
  confine_grounds(found, plan.time, batch.finished);
  if (extent == Extent::whole) release_forgotten(plan, batch.finished);
  settle(batch.finished, plan.time);
  return std::move(batch.finished);
}

void Enforcer::pin(const cgroup::FoundWorkload& target, const model::CpuSet& cpus, LogEntry entry,
                   Batch& batch) {
  const std::string& id = target.identity.id;
  const Held* held = find_held(holdings_.of(Attribute::cpus), id);
  const CpuSet held_cpus = held != nullptr && owns_vcpus(batch.snapshot, id) ? held->cpus() : CpuSet();
  if (held != nullptr && held->ticks_foreign > 0) {  // another program's, perhaps: the next tick knows
    batch.stuck |= held_cpus;
    return;
  }
  if (cpus.intersects(batch.moving) || batch.requests.size() >= kBatchSize) flush(batch);
  if (cpus.intersects(batch.stuck - held_cpus)) {
    batch.stuck |= held_cpus;
    const auto attempt = ++attempts_[{id, Attribute::cpus}];
    if (!worth_saying(attempt)) return;
    entry.result = "failed";
    entry.error = fmt::format("vCPUs {} are still held by a workload that could not be moved; attempt {}",
                              (cpus & batch.stuck).to_string(), attempt);
    batch.finished.push_back(std::move(entry));
    return;
  }
  batch.request(target, cpus, std::move(entry));
  batch.moving |= held_cpus;
}

void Enforcer::limit(const cgroup::FoundWorkload& target, const model::Action& action, Attribute attribute,
                     Batch& batch) {
  // Settings are read only now and then, so the value is read here. berth does not replace another program's
  // value.
  const Held* held = find_held(holdings_.of(attribute), target.identity.id);
  const auto present = cgroup::read_value(*target.cgroup, attribute);
  if (held != nullptr && present && *present != held->value) {
    read_again_(target.identity.id);
    return;
  }
  const auto recorded = writer_.original(target, attribute);
  const cgroup::Value original = recorded ? *recorded : present.value_or(cgroup::unset_value(attribute));
  LogEntry entry = entry_of(action, batch.plan.time, kEnforce, original);
  if (auto wanted = wanted_value(action, original)) {
    if (batch.requests.size() >= kBatchSize) flush(batch);
    batch.request(target, std::move(*wanted), std::move(entry));
  } else if (recorded) {
    flush(batch);
    if (is_late(batch)) return;
    give_back(target, attribute, std::move(entry), batch);
  }
}

void Enforcer::flush(Batch& batch) {
  if (!is_late(batch)) {
    const auto results = writer_.set_many(batch.requests, kBatchBudget);
    for (std::size_t i = 0; i < results.size(); ++i) {
      take_result(batch.requests[i], results[i], std::move(batch.entries[i]), batch);
    }
  } else {
    batch.stuck |= batch.moving;  // not begun: the next tick's plan has them again
  }
  batch.requests.clear();
  batch.entries.clear();
  batch.moving = {};
}

void Enforcer::take_result(const cgroup::Request& request, const cgroup::SetResult& result, LogEntry entry,
                           Batch& batch) {
  const auto& target = *request.target;
  const std::string& id = target.identity.id;
  const Attribute attribute = attribute_of(request.value);
  auto& values = holdings_.of(attribute);
  const Held* before = find_held(values, id);
  read_again_(id);
  if (!result) {
    if (attribute == Attribute::cpus && before != nullptr && owns_vcpus(batch.snapshot, id)) {
      batch.stuck |= before->cpus();
    }
    const auto* cpus = std::get_if<CpuSet>(&request.value);
    const bool withheld = cpus != nullptr && withheld_by_other(id, *cpus);
    fail(target, attribute,
         withheld ? model::Error(ErrorKind::transient, result.error().message()) : result.error(),
         std::move(entry), batch.finished);
    return;
  }
  attempts_.erase({id, attribute});
  if (left_alone_.count(id) > 0) {  // since an earlier one of this batch failed
    release(id, attribute, batch.plan.time, "the workload is left alone", batch.finished);
    return;
  }
  const auto written = writer_.written(target, attribute);
  const cgroup::Value value = written.value_or(request.value);
  // A limit is no news where its owner cannot hold a nearer value. It is one where berth wrote it before, and
  // the outcome was not known.
  const bool is_known = before != nullptr ? before->value == value : !written;
  if (attribute != Attribute::cpus && !*result && is_known) return;
  Held held = make_held(target.cgroup->id(), value,
                        writer_.original(target, attribute).value_or(request.value), batch.plan.time);
  if (attribute != Attribute::cpus) {
    held.cause = cause_of(batch.plan, batch.snapshot, id, attribute, before);
  }
  if (before != nullptr) {
    held.since = before->since;
    // Its owner does not get more tries by a plan that changes.
    held.reasserted = before->reasserted;
  }
  entry.new_value = cgroup::to_text(value);
  entry.old_value = *result ? cgroup::to_text((*result)->before) : entry.new_value;
  entry.result = "applied";
  values.insert_or_assign(id, std::move(held));
  batch.finished.push_back(std::move(entry));
}

void Enforcer::give_back(const cgroup::FoundWorkload& target, Attribute attribute, LogEntry entry,
                         Batch& batch) {
  const std::string& id = target.identity.id;
  auto& values = holdings_.of(attribute);
  const Held* held = find_held(values, id);
  if (held != nullptr) entry.old_value = cgroup::to_text(held->value);
  const auto report = writer_.restore(id, attribute);
  settle_ = true;
  read_again_(id);
  // Pinned where it already was: berth never wrote, and there is nothing to take back.
  const bool never_written = !report && report.error().kind() == ErrorKind::invalid_input;
  const bool still_recorded = report && !report->left.empty() && writer_.original(target, attribute);
  if ((!report && !never_written) || still_recorded) {
    if (attribute == Attribute::cpus && held != nullptr && owns_vcpus(batch.snapshot, id)) {
      batch.stuck |= held->cpus();
    }
    const auto attempt = ++attempts_[{id, attribute}];
    entry.result = "failed";
    entry.error = fmt::format("{}; attempt {}",
                              report ? report->left.front().reason : report.error().message(), attempt);
    if (worth_saying(attempt)) batch.finished.push_back(std::move(entry));
    return;
  }
  entry.result = "applied";
  if (never_written) {
    entry.new_value = entry.old_value;
  } else if (!report->restored.empty()) {
    entry.old_value = cgroup::to_text(report->restored.front().before);
    entry.new_value = cgroup::to_text(report->restored.front().after);
  } else if (!report->left.empty()) {
    entry.result = "left";
    entry.error = report->left.front().reason;
  } else if (!report->gone.empty()) {
    entry.result = "gone";
  }
  values.erase(id);
  attempts_.erase({id, attribute});
  batch.finished.push_back(std::move(entry));
}

}  // namespace berth::daemon
