// SPDX-License-Identifier: Apache-2.0
#include "policies/decide.h"
#include "policies/decision_id.h"

#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace berth::policies {

namespace {

using model::CpuSet;

bool owns_vcpus(const model::Workload& workload) {
  return workload.workload_class == model::WorkloadClass::latency_sensitive && !workload.shares;
}

// The vCPUs that the pin makes a workload leave.
CpuSet left_by(const model::Workload& workload, const CpuSet& wanted, const CpuSet& usable) {
  return (workload.cpus.empty() ? usable : workload.cpus) - wanted;
}

// Which actions of a plan place the workloads that arrived.
class Filter {
 public:
  Filter(const model::Snapshot& snapshot, const std::set<std::string>& arrived, const model::Plan& plan)
      : snapshot_(snapshot), arrived_(arrived), usable_(snapshot.topology.usable()) {
    for (const model::Action& action : plan.actions) {
      const auto* cpus = action.sets<CpuSet>();
      const model::Workload* workload =
          cpus != nullptr ? find_workload(snapshot, *action.workload()) : nullptr;
      if (workload == nullptr) continue;
      if (owns_vcpus(*workload) && arrived.contains(workload->id)) taken_ |= *cpus;
    }
    // What stays with its owner, although the plan may give it to another one.
    std::set<std::string> leaving;
    for (const model::Action& action : plan.actions) {
      if (action.workload() != nullptr && keeps_pin(action)) leaving.insert(*action.workload());
    }
    for (const model::Workload& workload : snapshot.workloads) {
      if (owns_vcpus(workload) && !leaving.contains(workload.id)) owned_ |= workload.cpus;
    }
  }

  // Takes vCPUs that stay with their owner off best-effort work. False for an action that waits.
  bool take(model::Action& action) const {
    if (action.attribute() == model::Attribute::memory_nodes) return arrived_.contains(*action.workload());
    if (!keeps_pin(action)) return false;
    auto* set = std::get_if<model::Set>(&action.what);
    auto* cpus = set != nullptr ? std::get_if<CpuSet>(&set->value) : nullptr;
    if (cpus == nullptr || !cpus->intersects(owned_)) return true;
    const model::Workload* workload = find_workload(snapshot_, set->workload);
    if (workload->workload_class == model::WorkloadClass::latency_sensitive) return false;
    *cpus -= owned_;
    return !cpus->empty();
  }

 private:
  bool keeps_pin(const model::Action& action) const {
    if (action.attribute() != model::Attribute::cpus) return false;
    const model::Workload* workload = find_workload(snapshot_, *action.workload());
    if (workload == nullptr) return false;
    if (arrived_.contains(workload->id)) return true;
    const auto* cpus = action.sets<CpuSet>();
    if (cpus == nullptr) return false;
    const CpuSet left = left_by(*workload, *cpus, usable_);
    const bool sensitive = workload->workload_class == model::WorkloadClass::latency_sensitive;
    return sensitive ? left.intersects(taken_) : !left.empty();
  }

  const model::Snapshot& snapshot_;
  const std::set<std::string>& arrived_;
  CpuSet usable_;
  CpuSet taken_;  // by those that arrived
  CpuSet owned_;
};

}  // namespace

model::Plan decide_places(const model::Snapshot& snapshot, const PolicySettings& settings,
                          const std::set<std::string>& arrived, double now) {
  PolicySettings placing = settings;
  placing.interference.max_moves = 0;
  placing.interference.between_ticks = true;
  model::Plan plan = decide(snapshot, placing);
  if (arrived.empty()) plan.actions.clear();
  const Filter filter(snapshot, arrived, plan);
  std::vector<model::Action> kept;
  for (model::Action& action : plan.actions) {
    if (!filter.take(action)) continue;
    action.decision = decision_id(now + snapshot.wall_ahead_s, action);
    kept.push_back(std::move(action));
  }
  plan.actions = std::move(kept);
  return plan;
}

}  // namespace berth::policies
