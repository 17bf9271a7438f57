// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/pool.h"

#include <fmt/core.h>

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

model::CpuSet strictly_reserved(const model::Snapshot& snapshot, const InterferenceSettings& settings) {
  if (settings.reserved == Reserved::shared || settings.reserved_cpus.empty()) return {};
  // Those of other programs are usable only if there are no others (docs/decisions/pinning.md).
  return (settings.reserved_cpus & snapshot.topology.usable()) - of_any_owner(snapshot.owned_cpus);
}

model::CpuSet vcpus_for_work(const model::Snapshot& snapshot, const InterferenceSettings& settings) {
  const model::CpuSet& usable = snapshot.topology.usable();
  model::CpuSet open = usable - strictly_reserved(snapshot, settings);
  return open.empty() ? usable : open;
}

std::string reserved_text(const Node& node) {
  const model::CpuSet& reserved = node.reserved();
  return reserved.empty() ? std::string() : fmt::format("; vCPUs {} are reserved", reserved.to_string());
}

Node node_to_plan(const model::Snapshot& snapshot, const InterferenceSettings& settings) {
  return {snapshot.topology, settings.shared_domain,
          snapshot.topology.usable() - vcpus_for_work(snapshot, settings)};
}

}  // namespace berth::policies
