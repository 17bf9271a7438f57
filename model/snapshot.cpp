// SPDX-License-Identifier: Apache-2.0
#include "model/snapshot.h"

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

}  // namespace berth::model
