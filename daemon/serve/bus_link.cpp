// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/bus_link.h"

#include "model/attribute.h"
#include "os/log.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace berth::daemon {

namespace {

bool same(const WorkloadCounts& a, const WorkloadCounts& b) {
  return a.latency_sensitive == b.latency_sensitive && a.best_effort == b.best_effort &&
         a.left_alone == b.left_alone;
}

// Enough to see a change. A thousand whole views would take as much memory as their usage.
std::size_t fingerprint_of(const WorkloadView& view) {
  std::size_t sum = view.vcpus + (view.managed ? 1U : 0U) + std::hash<double>()(view.progress.value_or(-1));
  for (const auto* text : {&view.service, &view.workload_class, &view.kind, &view.matched_by,
                           &view.pinned_cpus, &view.left_alone_reason, &view.cpu_held, &view.memory_held}) {
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
  const bool done = entry.kind != "foreign" && (entry.result == "applied" || entry.result == "restored");
  const bool known = entry.kind == "evict" || model::attribute_of(entry.attribute);
  if (entry.kind == "advertise" || (done && known)) listener.changed(entry);
}

}  // namespace

void BusLink::connect(Control& control, const Observer& observer, double now) {
  if (listener_ && listener_->link() == Link::up) {
    if (problem_said_) os::log_info("the bus is back");
    problem_.reset();
    problem_said_ = false;
  }
  if (is_lost()) {
    lose(listener_->problem());
    listener_.reset();
    tried_at_ = now;
  }
  if (listener_ || !starter_ || (now >= tried_at_ && now - tried_at_ < kRetry_s)) return;
  tried_at_ = now;
  auto started = starter_(control);
  if (!started) return lose(started.error().message());
  listener_ = std::move(*started);
  control_ = &control;
  observer_ = &observer;
  news_.start(control, observer);
}

void BusLink::leave() {
  listener_.reset();
  starter_ = nullptr;
  problem_ = "not served any more";
}

std::optional<std::string> BusLink::problem() const {
  if (!listener_ || listener_->link() == Link::connecting) return problem_.value_or("not connected yet");
  if (listener_->link() == Link::lost) return listener_->problem();
  return std::nullopt;
}

std::optional<std::string> BusLink::polkit_problem() const {
  return problem() ? "not asked without a bus" : listener_->polkit_problem();
}

void BusLink::tell(const std::vector<LogEntry>& entries, const StragglersNews& news) {
  if (listener_) news_.tell(*listener_, *control_, *observer_, entries, news);
}

void BusLink::decided(const std::vector<LogEntry>& entries) {
  if (!listener_) return;
  for (const LogEntry& entry : entries) listener_->decided(entry);
}

// Said once until the bus is back: each connection words the same trouble differently.
void BusLink::lose(const std::string& problem) {
  if (!problem_said_) os::log_warning("no bus: {}", problem);
  problem_ = problem;
  problem_said_ = true;
}

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
