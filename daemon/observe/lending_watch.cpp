// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/lending_watch.h"

#include "daemon/ledger/held.h"

namespace berth::daemon {

void LendingWatch::take(const model::Plan& plan, const RunOf& run_of, bool counts) {
  states_.clear();
  if (!plan.findings.interference || !plan.findings.interference->borrowing) return;
  for (const auto& [id, lender] : plan.findings.interference->borrowing->lenders) {
    if (counts && lender.missed) ++misses_;
    if (counts) withdrawn_ += lender.withdrawn.size();
    if (const auto run = run_of(id); run != 0) states_[id] = {run, lender.state};
  }
}

void LendingWatch::mark(model::Snapshot& snapshot, const RunOf& run_of) const {
  for (const auto& [id, known] : states_) {
    auto* workload = find_workload(snapshot, id);
    if (workload != nullptr && run_of(id) == known.cgroup_id) workload->lending = known.state;
  }
}

std::set<std::string> LendingWatch::lenders() const {
  std::set<std::string> ids;
  for (const auto& [id, known] : states_) {
    if (!known.state.cpus.empty()) ids.insert(id);
  }
  return ids;
}

}  // namespace berth::daemon
