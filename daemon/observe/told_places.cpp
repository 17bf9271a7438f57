// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/told_places.h"

#include <algorithm>
#include <utility>

namespace berth::daemon {

void ToldPlaces::keep(ToldPlace place) {
  std::erase_if(places_, [&](const ToldPlace& it) { return it.workload == place.workload; });
  places_.push_back(std::move(place));
}

void ToldPlaces::join(model::Snapshot& snapshot, const RunOf& run_of) {
  std::erase_if(places_, [&](const ToldPlace& place) {
    const auto workload =
        std::lower_bound(snapshot.workloads.begin(), snapshot.workloads.end(), place.workload,
                         [](const auto& it, const std::string& id) { return it.id < id; });
    if (workload == snapshot.workloads.end() || workload->id != place.workload) return true;
    const bool over =
        place.cpus.empty() || snapshot.time >= place.until || run_of(place.workload) != place.cgroup_id;
    workload->told_cpus = over || !workload->cpus.empty() ? model::CpuSet() : place.cpus;
    return over;
  });
}

}  // namespace berth::daemon
