// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/bus_news.h"

#include "model/attribute.h"

#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace berth::daemon {

namespace {

bool same(const WorkloadCounts& a, const WorkloadCounts& b) {
  return a.latency_sensitive == b.latency_sensitive && a.best_effort == b.best_effort &&
         a.unmanaged == b.unmanaged;
}

// Enough to see a change. A thousand whole views would take as much memory as their usage.
std::size_t fingerprint_of(const WorkloadView& view) {
  std::size_t sum = view.vcpus + (view.managed ? 1U : 0U) + std::hash<double>()(view.progress.value_or(-1));
  for (const auto* text : {&view.service, &view.workload_class, &view.kind, &view.matched_by,
                           &view.pinned_cpus, &view.unmanaged_reason, &view.cpu_held, &view.memory_held}) {
    sum = sum * 1'000'003 + std::hash<std::string>()(*text);
  }
  for (const auto& quota : {view.cpu_quota, view.original_cpu_quota}) {
    sum = sum * 1'000'003 + std::hash<std::optional<double>>()(quota);
  }
  for (const auto& limit : {view.memory_high, view.original_memory_high}) {
    sum = sum * 1'000'003 + std::hash<std::optional<std::uint64_t>>()(limit);
  }
  return sum;
}

// Reports changes that berth made, not those of other programs.
void tell_change(Listener& listener, const LogEntry& entry) {
  if (entry.kind == "advertise") {
    listener.scheduling_state_changed(entry.attribute, entry.old_value, entry.new_value, entry.reason,
                                      entry.decision);
    return;
  }
  if (entry.kind == "foreign" || (entry.result != "applied" && entry.result != "restored")) return;
  if (entry.kind == "evict") {
    std::uint64_t memory_bytes = 0;
    (void)std::from_chars(entry.old_value.data(), entry.old_value.data() + entry.old_value.size(),
                          memory_bytes);
    listener.evicted(entry.workload, entry.attribute, memory_bytes, entry.decision);
    return;
  }
  const auto attribute = model::attribute_of(entry.attribute);
  if (!attribute) return;
  if (*attribute != model::Attribute::cpus) {
    listener.quota_changed(entry.workload, entry.attribute, entry.old_value, entry.new_value, entry.decision);
  } else if (entry.kind == "pin") {
    listener.pinned(entry.workload, entry.new_value, entry.decision);
  } else {
    listener.unpinned(entry.workload, entry.decision);
  }
}

}  // namespace

std::vector<BusNews::Known> BusNews::now(const Control& control, const Observer& observer) {
  std::vector<Known> known;
  known.reserve(observer.snapshot().workloads.size());
  for (const auto& workload : observer.snapshot().workloads) {
    const auto view = control.workload(workload.id);
    if (view) known.push_back({workload.id, observer.cgroup_id(workload.id), fingerprint_of(*view)});
  }
  return known;
}

void BusNews::start(const Control& control, const Observer& observer) {
  known_ = now(control, observer);
  mode_ = control.mode();
  best_effort_cpus_ = control.best_effort_cpus();
  counts_ = control.counts();
  advertised_ = control.advertised();
}

void BusNews::tell(Listener& listener, const Control& control, const Observer& observer,
                   const std::vector<LogEntry>& entries, const StragglersNews& news) {
  auto current = now(control, observer);
  auto before = known_.begin();
  for (const auto& workload : current) {
    for (; before != known_.end() && before->id < workload.id; ++before) {
      listener.workload_vanished(before->id);
    }
    if (before == known_.end() || before->id != workload.id) {
      listener.workload_appeared(workload.id);
      continue;
    }
    if (before->cgroup_id != workload.cgroup_id) {  // restarted under the same path
      listener.workload_vanished(workload.id);
      listener.workload_appeared(workload.id);
    } else if (before->fingerprint != workload.fingerprint) {
      listener.workload_changed(workload.id);
    }
    ++before;
  }
  for (; before != known_.end(); ++before) listener.workload_vanished(before->id);
  known_ = std::move(current);

  for (const auto& entry : entries) tell_change(listener, entry);
  for (const auto& item : news.found) listener.straggler_found(item);
  for (const auto& item : news.relocate) listener.relocation_needed(item);

  if (std::exchange(mode_, control.mode()) != control.mode()) listener.mode_changed();
  const bool node_changed = !same(counts_, control.counts()) ||
                            best_effort_cpus_ != control.best_effort_cpus() ||
                            advertised_ != control.advertised();
  counts_ = control.counts();
  best_effort_cpus_ = control.best_effort_cpus();
  advertised_ = control.advertised();
  if (node_changed) listener.node_changed();
}

}  // namespace berth::daemon
