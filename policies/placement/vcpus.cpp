// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/vcpus.h"

#include "policies/interference/search.h"

#include <utility>
#include <vector>

namespace berth::policies {

VcpuChoice choose_vcpus(const Host& host, std::size_t bin, const model::PendingWorkload& request) {
  const Bin& home = host.bins()[bin];
  if (request.workload_class == model::WorkloadClass::best_effort)
    return {.cpus = home.unowned, .reason = "shares the vCPUs there that nobody owns"};

  std::vector<Tenant> waiting = host.tenants();
  std::vector<PlacementRequest> requests;
  for (Tenant& tenant : waiting) {
    requests.push_back(
        {.vcpus = tenant.vcpus, .pressure = tenant.pressure, .model = tenant.model, .allowed = {}});
    tenant.region = -1;
    tenant.cpus.clear();
  }
  const PlacementRequest wanted{.vcpus = request.vcpus.value_or(0),
                                .pressure = host.pressure_of(request.service).value,
                                .model = host.model_of(request.service),
                                .allowed = home.unowned};
  requests.push_back(wanted);
  waiting.push_back(
      {.vcpus = wanted.vcpus, .pressure = wanted.pressure, .model = wanted.model, .region = -1, .cpus = {}});
  const int newcomer = static_cast<int>(waiting.size()) - 1;
  Occupancy occupancy(host.node(), std::move(waiting));
  for (int i = 0; i < newcomer; ++i) occupancy.place(i, host.tenants()[i].region, host.tenants()[i].cpus);
  // By window whatever interference.search is: nobody moves for who is not there yet.
  const Placement placement = search_window({.node = host.node(),
                                             .settings = host.settings().interference,
                                             .best_effort = host.best_effort(),
                                             .requests = std::move(requests),
                                             .standing = std::move(occupancy)});
  return {.cpus = host.node().cpu_set(placement.occupancy.tenant(newcomer).cpus),
          .reason = placement.reasons[static_cast<std::size_t>(newcomer)]};
}

}  // namespace berth::policies
