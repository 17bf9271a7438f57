// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace berth::policies {

// Finds a snapshot's workloads by id. The snapshot must outlive it.
class WorkloadIndex {
 public:
  explicit WorkloadIndex(const model::Snapshot& snapshot) {
    for (const model::Workload& workload : snapshot.workloads) by_id_.emplace(workload.id, &workload);
  }
  // nullptr where there is none.
  const model::Workload* find(std::string_view id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
  }
  // The workload acted on; nullptr for an advertisement or an unknown one.
  const model::Workload* find(const model::Action& action) const {
    const std::string* id = action.workload();
    return id == nullptr ? nullptr : find(*id);
  }

 private:
  std::unordered_map<std::string_view, const model::Workload*> by_id_;
};

// The snapshot's workloads ascending by id, for sums that must not depend on the order in the snapshot.
inline std::vector<const model::Workload*> workloads_by_id(const model::Snapshot& snapshot) {
  std::vector<const model::Workload*> workloads;
  for (const model::Workload& workload : snapshot.workloads) workloads.push_back(&workload);
  std::sort(workloads.begin(), workloads.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  return workloads;
}

}  // namespace berth::policies
