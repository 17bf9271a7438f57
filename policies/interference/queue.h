// SPDX-License-Identifier: Apache-2.0
// The services that ask for vCPUs, in the order of serving.
#pragma once

#include "model/cpu_set.h"
#include "model/snapshot.h"
#include "model/workload.h"
#include "policies/interference/homeless.h"
#include "policies/interference/policy.h"
#include "policies/vcpus/pressure.h"
#include "policies/vcpus/search.h"

#include <optional>
#include <string>
#include <vector>

namespace berth::policies {

using Workloads = std::vector<const model::Workload*>;

inline bool latency_sensitive(model::WorkloadClass workload_class) {
  return workload_class == model::WorkloadClass::latency_sensitive;
}

// A latency-sensitive workload, running or pending, that asks for a known number of vCPUs.
struct Instance {
  std::string id;
  const model::Workload* workload = nullptr;  // nullptr: pending
  Pressure pressure;
  ModelChoice model;
  int grown = 0;      // vCPUs it is to own instead of its declared number; 0: that number
  std::string fault;  // why its present pin does not stand; empty without one
  // The outcome for a pin that stands except for its size, or for a place that an admission told.
  std::string settled;
};

// A latency-sensitive workload that runs, and asks for no vCPUs of its own.
struct SharedRequest {
  const model::Workload* workload = nullptr;
  std::optional<double> use_cores;  // measured
  ModelChoice model;
  std::optional<model::CpuSet> preferred;  // as in PlacementRequest
};

// The instances in the order of serving, each with its request.
struct Queue {
  std::vector<SharedRequest> shared = {};  // the oldest first
  std::vector<Instance> instances;
  std::vector<PlacementRequest> requests;
};

// The running ones come first, the oldest before the others; then those that are pending. A service that asks
// in vain is added to `unplaceable`, and to `homeless` if it runs.
Queue make_queue(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                 const Workloads& workloads, const GrownRequests& grown, const PendingBins& bins,
                 std::vector<model::WorkloadFinding>& unplaceable, std::vector<Homeless>& homeless);

}  // namespace berth::policies
