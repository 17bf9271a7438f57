// SPDX-License-Identifier: Apache-2.0
#include "daemon/bus_news.h"

#include <utility>

namespace berth::daemon {

namespace {

bool same(const WorkloadCounts& a, const WorkloadCounts& b) {
  return a.latency_sensitive == b.latency_sensitive && a.best_effort == b.best_effort &&
         a.unmanaged == b.unmanaged;
}

}  // namespace

std::vector<BusNews::Known> BusNews::now(const Control& control, const Observer& observer) {
  std::vector<Known> known;
  for (auto& view : control.workloads()) {
    view.cpu_cores.reset();
    view.memory_bytes.reset();
    view.score.reset();
    const auto cgroup_id = observer.cgroup_id(view.id);
    known.push_back({std::move(view), cgroup_id});
  }
  return known;
}

void BusNews::start(const Control& control, const Observer& observer) {
  known_ = now(control, observer);
  mode_ = control.mode();
  best_effort_cpus_ = control.best_effort_cpus();
  counts_ = control.counts();
}

void BusNews::tell(Listener& listener, const Control& control, const Observer& observer,
                   const std::vector<LogEntry>& entries) {
  auto current = now(control, observer);
  auto before = known_.begin();
  for (const auto& workload : current) {
    for (; before != known_.end() && before->view.id < workload.view.id; ++before) {
      listener.workload_vanished(before->view.id);
    }
    if (before == known_.end() || before->view.id != workload.view.id) {
      listener.workload_appeared(workload.view.id);
      continue;
    }
    if (before->cgroup_id != workload.cgroup_id) {  // restarted under the same path
      listener.workload_vanished(workload.view.id);
      listener.workload_appeared(workload.view.id);
    } else if (!(before->view == workload.view)) {
      listener.workload_changed(workload.view.id);
    }
    ++before;
  }
  for (; before != known_.end(); ++before) listener.workload_vanished(before->view.id);
  known_ = std::move(current);

  for (const auto& entry : entries) {
    if (entry.kind == "pin" && entry.result == "applied") {
      listener.pinned(entry.workload, entry.new_value, entry.decision);
    } else if ((entry.kind == "unpin" && entry.result == "applied") ||
               (entry.kind == "restore" && entry.result == "restored")) {
      listener.unpinned(entry.workload, entry.decision);
    }
  }

  if (std::exchange(mode_, control.mode()) != control.mode()) listener.mode_changed();
  const bool node_changed =
      !same(counts_, control.counts()) || best_effort_cpus_ != control.best_effort_cpus();
  counts_ = control.counts();
  best_effort_cpus_ = control.best_effort_cpus();
  if (node_changed) listener.node_changed();
}

}  // namespace berth::daemon
