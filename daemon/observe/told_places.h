// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace berth::daemon {

// vCPUs of an admitted workload that has come: they are its own until it is pinned, for so long.
struct ToldPlace {
  std::string workload;
  std::uint64_t cgroup_id = 0;  // of the run that was let in
  model::CpuSet cpus;
  double until = 0;  // epoch seconds
};

// The places that admissions told to workloads that have come.
class ToldPlaces {
 public:
  using RunOf = std::function<std::uint64_t(const std::string& workload)>;

  // Replaces an earlier place of the workload. Without vCPUs it has none from then on.
  void keep(ToldPlace place);
  // Puts the places into the snapshot's workloads, and forgets those of other runs and those whose time is
  // over. A pinned workload has none. `run_of` gives the cgroup id of a workload.
  void join(model::Snapshot& snapshot, const RunOf& run_of);

 private:
  std::vector<ToldPlace> places_;
};

}  // namespace berth::daemon
