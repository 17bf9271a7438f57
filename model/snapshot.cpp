// SPDX-License-Identifier: Apache-2.0
#include "model/snapshot.h"

#include "model/path.h"

#include <algorithm>

namespace berth::model {

Workload* find_workload(Snapshot& snapshot, const std::string& id) {
  const auto found = std::lower_bound(snapshot.workloads.begin(), snapshot.workloads.end(), id,
                                      [](const Workload& it, const std::string& key) { return it.id < key; });
  return found != snapshot.workloads.end() && found->id == id ? &*found : nullptr;
}

const Workload* find_workload(const Snapshot& snapshot, const std::string& id) {
  return find_workload(const_cast<Snapshot&>(snapshot), id);  // the function only looks
}

const BestEffortGroup* find_group(const Snapshot& snapshot, const std::string& id) {
  const auto found =
      std::lower_bound(snapshot.groups.begin(), snapshot.groups.end(), id,
                       [](const BestEffortGroup& it, const std::string& key) { return it.id < key; });
  return found != snapshot.groups.end() && found->id == id ? &*found : nullptr;
}

const OtherGroup* find_other(const Snapshot& snapshot, const std::string& id) {
  const auto found =
      std::lower_bound(snapshot.others.begin(), snapshot.others.end(), id,
                       [](const OtherGroup& it, const std::string& key) { return it.id < key; });
  return found != snapshot.others.end() && found->id == id ? &*found : nullptr;
}

const BestEffortGroup* group_of(const Snapshot& snapshot, const std::string& workload) {
  if (snapshot.groups.empty()) return nullptr;
  for (std::string path = workload; !path.empty(); path = parent_path(path)) {
    if (const auto* group = find_group(snapshot, path)) return group;
  }
  return nullptr;
}

}  // namespace berth::model
