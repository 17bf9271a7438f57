// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/rise.h"

#include "policies/vcpus/score.h"

namespace berth::policies {

std::optional<Rise> rise_of(const Host& host, const model::PendingWorkload& newcomer,
                            const model::CpuSet& cpus) {
  if (newcomer.workload_class != model::WorkloadClass::latency_sensitive || host.shares(newcomer))
    return std::nullopt;
  const auto weighting = host.settings().interference.weighting;
  Occupancy with = host.occupancy();
  const double before = evaluate(with, weighting, host.best_effort()).node;
  with.add(host.tenant_of(newcomer, cpus));
  return Rise{.before = before, .after = evaluate(with, weighting, host.best_effort()).node};
}

}  // namespace berth::policies
