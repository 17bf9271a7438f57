// SPDX-License-Identifier: Apache-2.0
#include "policies/action_order.h"

#include "policies/limit_change.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace berth::policies {

namespace {

enum class Phase {
  evict,
  end_burst,
  lower,
  exchange,
  priority,
  leave,
  others,
  gain,
  memory,
  raise,
  advertise
};

Phase phase_of(const model::Action& action, const model::Workload* workload) {
  if (std::holds_alternative<model::Evict>(action.what)) return Phase::evict;
  // Of a group. A user can make thousands of those, so services' pins come before.
  if (action.attribute() == model::Attribute::cpu_idle) return Phase::priority;
  if (workload == nullptr)
    return action.attribute() == model::Attribute::cpus ? Phase::others : Phase::advertise;
  // The kernel takes no quota below the burst.
  if (action.gives_back(model::Attribute::cpu_burst)) return Phase::end_burst;
  if (const auto limit = limit_change(action, *workload))
    return limit->wanted < limit->present ? Phase::lower : Phase::raise;
  if (action.attribute() == model::Attribute::memory_nodes) return Phase::memory;
  if (const auto attribute = action.attribute(); attribute && *attribute != model::Attribute::cpus)
    return action.gives_back(*attribute) == row_of(*attribute).takes ? Phase::raise : Phase::lower;
  if (workload->workload_class == model::WorkloadClass::latency_sensitive) return Phase::exchange;
  const auto* cpus = action.sets<model::CpuSet>();
  // Not pinned means on every vCPU, so that any pin leaves some.
  const bool gains = cpus == nullptr || (!workload->cpus.empty() && workload->cpus.is_subset_of(*cpus));
  return gains ? Phase::gain : Phase::leave;
}

struct Entry {
  Phase phase = Phase::advertise;
  model::CpuSet present;  // of a latency-sensitive pin or unpin: the present vCPUs of its workload
  model::CpuSet wanted;
  model::Action action;
};

// For each entry the ones that must come before it: they leave vCPUs that it takes.
std::vector<std::set<std::size_t>> blockers(const std::vector<Entry>& entries) {
  std::map<int, std::vector<std::size_t>> leaving;  // by vCPU
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (const int cpu : entries[i].present - entries[i].wanted) leaving[cpu].push_back(i);
  }
  std::vector<std::set<std::size_t>> before(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (const int cpu : entries[i].wanted - entries[i].present) {
      if (const auto found = leaving.find(cpu); found != leaving.end()) {
        before[i].insert(found->second.begin(), found->second.end());
      }
    }
  }
  return before;
}

// Keeps the order of the entries, but puts none before its blockers while there is a choice.
std::vector<Entry> freeing_first(std::vector<Entry> entries) {
  const std::vector<std::set<std::size_t>> before = blockers(entries);
  std::vector<std::vector<std::size_t>> after(entries.size());
  std::vector<std::size_t> waiting_for(entries.size());
  std::set<std::size_t> ready;
  std::set<std::size_t> waiting;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    waiting_for[i] = before[i].size();
    (before[i].empty() ? ready : waiting).insert(i);
    for (const std::size_t blocker : before[i]) after[blocker].push_back(i);
  }
  std::vector<Entry> ordered;
  while (!ready.empty() || !waiting.empty()) {
    std::set<std::size_t>& from = ready.empty() ? waiting : ready;
    const std::size_t next = *from.begin();
    from.erase(from.begin());
    ordered.push_back(std::move(entries[next]));
    for (const std::size_t freed : after[next]) {
      if (--waiting_for[freed] == 0 && waiting.erase(freed) > 0) ready.insert(freed);
    }
  }
  return ordered;
}

}  // namespace

std::vector<model::Action> order_actions(const WorkloadIndex& workloads, std::vector<model::Action> actions) {
  std::map<Phase, std::vector<Entry>> phases;
  for (model::Action& action : actions) {
    const model::Workload* workload = workloads.find(action);
    Entry entry{.phase = phase_of(action, workload), .present = {}, .wanted = {}, .action = {}};
    if (entry.phase == Phase::exchange) {
      entry.present = workload->cpus;
      if (const auto* cpus = action.sets<model::CpuSet>()) entry.wanted = *cpus;
    }
    entry.action = std::move(action);
    phases[entry.phase].push_back(std::move(entry));
  }
  std::vector<model::Action> ordered;
  ordered.reserve(actions.size());
  for (auto& [phase, entries] : phases) {
    if (phase == Phase::exchange) entries = freeing_first(std::move(entries));
    for (Entry& entry : entries) ordered.push_back(std::move(entry.action));
  }
  return ordered;
}

}  // namespace berth::policies
