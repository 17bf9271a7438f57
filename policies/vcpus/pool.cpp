// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/pool.h"

namespace berth::policies {

model::CpuSet best_effort_pool(const Occupancy& occupancy, const BestEffortDemand& demand) {
  const Node& node = occupancy.node();
  const bool spares_siblings =
      pool_state(occupancy.unowned_count(), occupancy.spared_count(), demand).spares_siblings;
  model::CpuSet cpus;
  for (int position = 0; position < node.size(); ++position) {
    if (spares_siblings ? occupancy.spared(position) : occupancy.unowned(position))
      cpus.insert(node.cpu(position));
  }
  return cpus;
}

model::CpuSet owned_by_instances(const Occupancy& occupancy) {
  const Node& node = occupancy.node();
  model::CpuSet cpus;
  for (int position = 0; position < node.size(); ++position) {
    if (occupancy.owner(position) >= 0) cpus.insert(node.cpu(position));
  }
  return cpus;
}

model::CpuSet open_to_all(const std::vector<model::OwnedCpus>& owned_cpus) {
  model::CpuSet cpus;
  for (const model::OwnedCpus& owned : owned_cpus) {
    if (owned.how == model::OwnedHow::kubelet || owned.how == model::OwnedHow::runtime) cpus |= owned.cpus;
  }
  return cpus;
}

model::CpuSet of_any_owner(const std::vector<model::OwnedCpus>& owned_cpus) {
  model::CpuSet cpus;
  for (const model::OwnedCpus& owned : owned_cpus) cpus |= owned.cpus;
  return cpus;
}

}  // namespace berth::policies
