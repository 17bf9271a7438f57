// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace berth::policies {

// The snapshot's workloads ascending by id, for sums that must not depend on the order in the snapshot. A
// daemon's snapshot has that order already.
inline std::vector<const model::Workload*> workloads_by_id(const model::Snapshot& snapshot) {
  std::vector<const model::Workload*> workloads;
  workloads.reserve(snapshot.workloads.size());
  for (const model::Workload& workload : snapshot.workloads) workloads.push_back(&workload);
  const auto before = [](const auto* a, const auto* b) { return a->id < b->id; };
  if (!std::is_sorted(workloads.begin(), workloads.end(), before))
    std::sort(workloads.begin(), workloads.end(), before);
  return workloads;
}

// A snapshot with the list of its workloads, for policies that go through all of them. Thousands of ids are
// compared once a tick, not once a policy. The snapshot must outlive it.
struct OrderedSnapshot {
  OrderedSnapshot(const model::Snapshot& of) : snapshot(of), workloads(workloads_by_id(of)) {}

  const model::Snapshot& snapshot;
  std::vector<const model::Workload*> workloads;  // ascending by id
};

// Finds a snapshot's workloads by id. The snapshot must outlive it. At most ticks nothing is looked up, so
// the index is made at the first question.
class WorkloadIndex {
 public:
  explicit WorkloadIndex(const model::Snapshot& snapshot) : snapshot_(snapshot) {}
  // nullptr where there is none.
  const model::Workload* find(std::string_view id) const {
    if (by_id_.empty()) by_id_ = workloads_by_id(snapshot_);
    const auto found =
        std::lower_bound(by_id_.begin(), by_id_.end(), id,
                         [](const auto* workload, std::string_view key) { return workload->id < key; });
    return found == by_id_.end() || (*found)->id != id ? nullptr : *found;
  }
  // The workload acted on; nullptr for an advertisement or an unknown one.
  const model::Workload* find(const model::Action& action) const {
    const std::string* id = action.workload();
    return id == nullptr ? nullptr : find(*id);
  }

 private:
  const model::Snapshot& snapshot_;
  mutable std::vector<const model::Workload*> by_id_;
};

}  // namespace berth::policies
