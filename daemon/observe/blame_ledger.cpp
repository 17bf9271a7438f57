// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/blame_ledger.h"

#include "ebpf/slices.h"

#include <algorithm>
#include <utility>

namespace berth::daemon {

namespace {

bool has_name(CulpritKind kind) { return kind <= CulpritKind::cgroup; }

// "a" and "a/b" of "a/b/c": the cgroups of the first and the second level.
std::string first_levels(const std::string& path, int levels) {
  std::size_t end = 0;
  for (int level = 0; level < levels; ++level) {
    end = path.find('/', level == 0 ? 0 : end + 1);
    if (end == std::string::npos) return path;
  }
  return path.substr(0, end);
}

// Whether something ran on the vCPU during the wait, so that the hypervisor may have stolen a part of it.
bool ran(const BlameLedger::Reading::Wait& wait) { return wait.by != BERTH_BY_QUOTA; }

}  // namespace

const char* to_string(CulpritKind kind) {
  switch (kind) {
    case CulpritKind::instance:
      return "instance";
    case CulpritKind::latency_sensitive:
      return "latency-sensitive";
    case CulpritKind::best_effort:
      return "best-effort";
    case CulpritKind::cgroup:
      return "cgroup";
    case CulpritKind::self:
      return "own";
    case CulpritKind::quota:
      return "quota";
    case CulpritKind::kernel:
      return "kernel";
    case CulpritKind::interrupts:
      return "interrupts";
    case CulpritKind::steal:
      return "steal";
    case CulpritKind::idle:
      return "idle";
    case CulpritKind::unknown:
      break;
  }
  return "unknown";
}

CulpritName BlameLedger::name_of(const Reading::Wait& wait, const BlameWorkload& waits,
                                 const BlameWorkloads& workloads) {
  switch (wait.by) {
    case BERTH_BY_IDLE:
      return {CulpritKind::idle, ""};
    case BERTH_BY_KERNEL:
      return {CulpritKind::kernel, ""};
    case BERTH_BY_INTERRUPTS:
      return {CulpritKind::interrupts, ""};
    case BERTH_BY_QUOTA:
      return {CulpritKind::quota, ""};
    case BERTH_BY_UNKNOWN:
      return {CulpritKind::unknown, ""};
    default:
      break;
  }
  // Of nested matches the outermost is the workload.
  for (const std::uint64_t id : wait.group.ids) {
    const auto found = workloads.find(id);
    if (found == workloads.end()) continue;
    const BlameWorkload& ran = found->second;
    if (ran.id == waits.id) return {CulpritKind::self, ""};
    if (!ran.service.empty() && ran.service == waits.service) return {CulpritKind::instance, ran.id};
    const bool latency = ran.workload_class == model::WorkloadClass::latency_sensitive;
    return {latency ? CulpritKind::latency_sensitive : CulpritKind::best_effort, ran.id};
  }
  // Processes may also be in the root cgroup, which has no path.
  const bool known = !wait.group.path.empty() || wait.by == 1;
  if (!known) return {CulpritKind::unknown, ""};
  return {CulpritKind::cgroup, wait.group.path.empty() ? "/" : wait.group.path};
}

BlameLedger::Waiting* BlameLedger::entry_of(const BlameWorkload& workload, const BlameWorkloads& workloads) {
  const auto found = waiting_.find(workload.id);
  if (found != waiting_.end()) return &found->second;
  if (waiting_.size() >= kMostWaiting) {
    std::set<std::string> living;
    for (const auto& [id, present] : workloads) living.insert(present.id);
    std::erase_if(waiting_, [&](const auto& entry) { return !living.contains(entry.first); });
    if (waiting_.size() >= kMostWaiting) return nullptr;
  }
  return &waiting_.emplace(workload.id, Waiting{workload.service, {}, {}}).first->second;
}

void BlameLedger::count(Waiting& waiting, CulpritName culprit, double ms) {
  if (has_name(culprit.kind) && !waiting.blames.contains(culprit)) {
    const std::string first = first_levels(culprit.name, 1);
    const std::string second = first_levels(culprit.name, 2);
    if (culprit.name != first && waiting.below[first] >= kMostBelowFirst) {
      culprit = {CulpritKind::cgroup, first};
    } else if (culprit.name != second && waiting.below[second] >= kMostBelowSecond) {
      culprit = {CulpritKind::cgroup, second};
    }
    if (!waiting.blames.contains(culprit)) {
      if (culprit.name != first) ++waiting.below[first];
      if (culprit.name != second) ++waiting.below[second];
    }
  }
  waiting.blames[std::move(culprit)] += ms;
}

void BlameLedger::add(const Reading& reading, const BlameWorkloads& workloads) {
  const auto found = workloads.find(reading.cgroup);
  if (found == workloads.end()) return;
  const BlameWorkload& waits = found->second;
  Waiting* waiting = entry_of(waits, workloads);
  double all = 0;
  for (const auto& wait : reading.waits) all += ran(wait) ? wait.ms : 0;
  const double stolen = std::clamp(reading.stolen_ms, 0.0, all);
  const double left = all > 0 ? 1 - stolen / all : 1;
  const auto add_one = [&](CulpritName culprit, double ms) {
    if (ms <= 0) return;
    seconds_.at(static_cast<std::size_t>(culprit.kind)) += ms / 1000;
    if (waiting != nullptr) count(*waiting, std::move(culprit), ms);
  };
  for (const auto& wait : reading.waits)
    add_one(name_of(wait, waits, workloads), ran(wait) ? wait.ms * left : wait.ms);
  add_one({CulpritKind::steal, ""}, stolen);
}

void BlameLedger::forget(const std::string& subject, const std::set<std::string>& kept) {
  std::erase_if(waiting_, [&](const auto& entry) {
    return (entry.first == subject || entry.second.service == subject) && !kept.contains(entry.first);
  });
}

Blames BlameLedger::of(const std::string& subject) const {
  Blames sum;
  for (const auto& [id, waiting] : waiting_) {
    if (id != subject && waiting.service != subject) continue;
    for (const auto& [culprit, ms] : waiting.blames) sum[culprit] += ms;
  }
  return sum;
}

}  // namespace berth::daemon
