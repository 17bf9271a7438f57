// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/vcpus.h"

#include "policies/interference/search.h"

#include <utility>

namespace berth::policies {

VcpuChoice choose_vcpus(const Host& host, std::size_t bin, const model::PendingWorkload& request) {
  const Bin& home = host.bins()[bin];
  if (request.workload_class == model::WorkloadClass::best_effort)
    return {.cpus = home.unowned, .reason = "shares the vCPUs there that no workload owns"};

  // By window whatever interference.search is: no instance moves for work that does not run yet.
  WindowChoice choice = choose_window(host.occupancy(), host.settings().interference, host.best_effort(),
                                      {.vcpus = request.vcpus.value_or(0),
                                       .pressure = host.pressure_of(request.service).value,
                                       .model = host.model_of(request.service),
                                       .allowed = home.unowned});
  return {.cpus = host.node().cpu_set(choice.cpus), .reason = std::move(choice.reason)};
}

}  // namespace berth::policies
