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
    settle(plan);
  }

  // Takes vCPUs that stay with their owner off best-effort work. False for an action that waits.
  bool take(model::Action& action) const {
    if (action.attribute() == model::Attribute::memory_nodes) return arrived_.contains(*action.workload());
    const model::Workload* workload = pinned_by(action);
    if (workload == nullptr) return false;
    if (is_service(*workload)) return services_.contains(workload->id);
    if (!keeps_pin(action, *workload)) return false;
    auto* set = std::get_if<model::Set>(&action.what);
    auto* cpus = set != nullptr ? std::get_if<CpuSet>(&set->value) : nullptr;
    if (cpus == nullptr || !cpus->intersects(owned_)) return true;
    *cpus -= owned_;
    return !cpus->empty();
  }

 private:
  static bool is_service(const model::Workload& workload) {
    return workload.workload_class == model::WorkloadClass::latency_sensitive;
  }

  const model::Workload* pinned_by(const model::Action& action) const {
    return action.attribute() == model::Attribute::cpus ? find_workload(snapshot_, *action.workload())
                                                        : nullptr;
  }

  // A service leaves its vCPUs only for one that gets its pin, and gets its own pin only if the owners there
  // leave, and best-effort work has others. So this begins with all of them, and drops those that cannot be
  // until none is left to drop.
  void settle(const model::Plan& plan) {
    std::vector<const model::Action*> pins;
    for (const model::Action& action : plan.actions) {
      const model::Workload* workload = pinned_by(action);
      if (workload != nullptr && is_service(*workload)) pins.push_back(&action);
    }
    do {
      services_.clear();
      taken_ = {};
      owned_ = {};
      for (const model::Action* action : pins) {
        const model::Workload& workload = *pinned_by(*action);
        services_.insert(workload.id);
        const auto* cpus = action->sets<CpuSet>();
        if (cpus != nullptr && owns_vcpus(workload) && arrived_.contains(workload.id)) taken_ |= *cpus;
      }
      for (const model::Workload& workload : snapshot_.workloads) {
        if (owns_vcpus(workload) && !services_.contains(workload.id)) owned_ |= workload.cpus;
      }
      const CpuSet held = owned_ | stuck(plan);
      std::erase_if(pins, [&](const model::Action* action) {
        const auto* cpus = action->sets<CpuSet>();
        return !keeps_pin(*action, *pinned_by(*action)) || (cpus != nullptr && cpus->intersects(held));
      });
    } while (pins.size() < services_.size());
  }

  // The vCPUs of best-effort work that would find all others owned.
  CpuSet stuck(const model::Plan& plan) const {
    CpuSet stuck;
    for (const model::Action& action : plan.actions) {
      const model::Workload* workload = pinned_by(action);
      const auto* cpus = action.sets<CpuSet>();
      if (workload == nullptr || is_service(*workload) || cpus == nullptr) continue;
      if ((*cpus - owned_).empty()) stuck |= workload->cpus.empty() ? usable_ : workload->cpus;
    }
    return stuck;
  }

  bool keeps_pin(const model::Action& action, const model::Workload& workload) const {
    if (arrived_.contains(workload.id)) return true;
    const auto* cpus = action.sets<CpuSet>();
    if (cpus == nullptr) return false;
    const CpuSet left = left_by(workload, *cpus, usable_);
    return is_service(workload) ? left.intersects(taken_) : !left.empty();
  }

  const model::Snapshot& snapshot_;
  const std::set<std::string>& arrived_;
  CpuSet usable_;
  CpuSet taken_;                    // by those that arrived
  CpuSet owned_;                    // what stays with its owner, although the plan may give it to another one
  std::set<std::string> services_;  // those that get their pins
};

}  // namespace

model::Plan decide_places(const model::Snapshot& snapshot, const PolicySettings& settings,
                          const std::set<std::string>& arrived, double now) {
  PolicySettings placing = settings;
  placing.interference.max_moves = 0;
  placing.interference.between_ticks = true;
  model::Plan plan = decide(snapshot, placing);
  const Filter filter(snapshot, arrived, plan);
  std::vector<model::Action> kept;
  std::set<std::string> waiting;  // those whose pins wait
  for (model::Action& action : plan.actions) {
    if (!filter.take(action)) {
      if (action.attribute() == model::Attribute::cpus) waiting.insert(*action.workload());
      continue;
    }
    action.decision = decision_id(now + snapshot.wall_ahead_s, action);
    kept.push_back(std::move(action));
  }
  // Memory follows the pin.
  std::erase_if(kept, [&](const model::Action& action) {
    return action.attribute() == model::Attribute::memory_nodes && waiting.contains(*action.workload());
  });
  plan.actions = std::move(kept);
  return plan;
}

}  // namespace berth::policies
