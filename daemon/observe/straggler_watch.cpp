// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/straggler_watch.h"

#include "daemon/ledger/held.h"

#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

// The id of the plan's action on the workload, growth first.
std::string decision_of(const model::Plan& plan, const std::string& workload) {
  for (const auto& action : plan.actions) {
    if (action.policy == "straggler" && action.workload() != nullptr && *action.workload() == workload) {
      return action.decision;
    }
  }
  return {};
}

std::string text_of(const model::Resources& amount) {
  std::string cores = fmt::format("{:.2f} cores", amount.cpu_cores);
  if (amount.memory_bytes == 0) return cores;
  const std::string bytes = fmt::format("{} bytes", amount.memory_bytes);
  return amount.cpu_cores > 0 ? cores + " and " + bytes : bytes;
}

}  // namespace

// Returns true where it is news.
bool StragglerWatch::see(SeenRuns& seen, const std::string& id, std::uint64_t run, double now) {
  auto& last = seen[id];
  const bool news = last.cgroup_id != run || now - last.at >= kQuiet_s || now < last.at;
  last = {run, now};
  return news;
}

StragglerWatch::News StragglerWatch::take(const model::Plan& plan, const RunOf& run_of) {
  const auto ended = [&](const auto& item) { return run_of(item.first) != item.second.cgroup_id; };
  std::erase_if(straggled_, ended);
  std::erase_if(relocated_, ended);
  std::erase_if(pressed_, ended);
  stragglers_ = 0;
  relocations_ = 0;
  News news;
  const auto& findings = plan.findings.straggler;
  if (!findings) return news;
  for (const auto& [id, task] : findings->tasks) {
    const auto run = run_of(id);
    if (!task.straggler || run == 0) continue;
    ++stragglers_;
    seen_at_ = plan.time;
    if (see(straggled_, id, run, plan.time)) {
      news.found.push_back({id, task.reason, {}, decision_of(plan, id)});
    }
  }
  for (const auto& relocation : findings->relocate) {
    const auto run = run_of(relocation.workload);
    if (run == 0) continue;
    ++relocations_;
    if (!see(relocated_, relocation.workload, run, plan.time)) continue;
    news.relocate.push_back(
        {relocation.workload,
         fmt::format("this node lacks {} that it needs to finish in time", text_of(relocation.lacks)),
         relocation.lacks, decision_of(plan, relocation.workload)});
  }
  for (const auto& move : findings->moves) {
    const auto run = run_of(move.workload);
    if (move.kind == model::LimitMove::Kind::recall && run != 0) pressed_[move.workload] = {run, plan.time};
  }
  return news;
}

void StragglerWatch::mark(model::Snapshot& snapshot, const RunOf& run_of) const {
  snapshot.straggler_seen_at = seen_at_;
  const auto mark_each = [&](const SeenRuns& seen, std::optional<double> model::Workload::*at) {
    for (const auto& [id, last] : seen) {
      auto* workload = find_workload(snapshot, id);
      if (workload != nullptr && run_of(id) == last.cgroup_id) workload->*at = last.at;
    }
  };
  mark_each(straggled_, &model::Workload::straggled_at);
  mark_each(pressed_, &model::Workload::pressed_at);
}

}  // namespace berth::daemon
