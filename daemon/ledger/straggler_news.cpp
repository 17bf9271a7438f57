// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/straggler_news.h"

#include "daemon/ledger/held.h"

#include <optional>
#include <string>

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

StragglersNews straggler_news(const model::Standing& before, const model::Snapshot& snapshot,
                              const model::Plan& plan) {
  StragglersNews news;
  const auto& findings = plan.findings.straggler;
  if (!findings) return news;
  const auto is_new = [&](const std::string& id, std::optional<double> model::RunMemory::*last) {
    const auto* workload = find_workload(snapshot, id);
    if (workload == nullptr) return false;
    const auto known = before.runs.find(id);
    if (known == before.runs.end() || known->second.run != model::run_of(*workload)) return true;
    const auto& at = known->second.*last;
    return !at || plan.time - *at >= kQuiet_s || plan.time < *at;
  };
  for (const auto& [id, task] : findings->tasks) {
    if (task.straggler && is_new(id, &model::RunMemory::straggled_at))
      news.found.push_back({id, task.reason, {}, decision_of(plan, id)});
  }
  for (const auto& relocation : findings->relocate) {
    if (!is_new(relocation.workload, &model::RunMemory::relocated_at)) continue;
    news.relocate.push_back(
        {relocation.workload,
         fmt::format("this node lacks {} that it needs to finish in time", text_of(relocation.lacks)),
         relocation.lacks, decision_of(plan, relocation.workload)});
  }
  return news;
}

}  // namespace berth::daemon
