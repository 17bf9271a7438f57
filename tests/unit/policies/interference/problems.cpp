// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/problems.h"

#include "policies/vcpus/pool.h"
#include "tests/unit/policies/interference/naive.h"

#include <algorithm>
#include <utility>

namespace berth::policies::testing {

Problem::Problem(const model::Snapshot& snapshot, const InterferenceSettings& wanted)
    : settings(wanted), node(node_to_plan(snapshot, wanted)) {
  BestEffortDemand demand{.use_cores = 0,
                          .min_cpus = std::max(1, settings.be_min_cpus),
                          .avoid_siblings = settings.be_avoid_siblings};
  for (const model::Workload& workload : snapshot.workloads) {
    if (workload.workload_class != model::WorkloadClass::best_effort) continue;
    demand.use_cores += workload.usage.cpu().mean().value_or(0);
  }
  std::vector<PlacementRequest> requests;
  std::vector<Tenant> tenants;
  for (const naive::Request& request : naive::requests(snapshot, settings)) {
    model::CpuSet may;
    for (const int cpu : request.may) may.insert(cpu);
    const model::InterferenceModel model{.b0 = 0, .k1 = request.k1, .k2 = request.k2};
    requests.push_back({.vcpus = request.asked, .pressure = request.u, .model = model, .allowed = may});
    tenants.push_back(
        {.vcpus = request.asked, .pressure = request.u, .model = model, .region = -1, .cpus = {}});
    ids.push_back(request.id);
  }
  problem =
      std::make_unique<PlacementProblem>(PlacementProblem{.node = node,
                                                          .settings = settings,
                                                          .best_effort = demand,
                                                          .requests = std::move(requests),
                                                          .standing = Occupancy(node, std::move(tenants))});
  ground = std::make_unique<optimal::Ground>(*problem);
  const Placement placement = search_window(*problem);
  for (const Tenant& tenant : placement.occupancy.tenants()) {
    by_window.push_back({.region = tenant.region, .cpus = tenant.cpus});
  }
}

}  // namespace berth::policies::testing
