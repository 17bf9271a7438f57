// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/vcpus.h"

#include "policies/level.h"
#include "policies/vcpus/search.h"

#include <utility>

#include <fmt/core.h>

namespace berth::policies {

VcpuChoice choose_vcpus(const Host& host, const Bin& home, const model::PendingWorkload& request) {
  if (request.workload_class == model::WorkloadClass::best_effort || host.shares(request))
    return {.cpus = home.unowned, .reason = "shares the vCPUs there that no workload owns"};

  // By window whatever interference.search is: no instance moves for work that does not run yet.
  const auto choose = [&](const model::CpuSet& allowed) {
    return choose_window(host.occupancy(), host.settings().interference, host.best_effort(),
                         {.vcpus = request.vcpus.value_or(0),
                          .pressure = host.pressure_of(request.service).value,
                          .model = host.model_of(request.service),
                          .allowed = allowed,
                          .whole_cores = has_whole_cores(request, host.settings().interference)});
  };
  if (!request.told_cpus.empty() && request.told_cpus.is_subset_of(home.unowned)) {
    const WindowChoice told = choose(request.told_cpus);
    if (told.region >= 0) {
      return {.cpus = host.node().cpu_set(told.cpus),
              .reason = fmt::format("placed on {}, as its admission told", request.told_cpus.to_string())};
    }
  }
  WindowChoice choice = choose(home.unowned);
  return {.cpus = host.node().cpu_set(choice.cpus), .reason = std::move(choice.reason)};
}

}  // namespace berth::policies
