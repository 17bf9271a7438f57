// SPDX-License-Identifier: Apache-2.0
#include "policies/memory_nodes.h"

#include "policies/workload_index.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

// By workload id: its vCPUs once the actions are carried out, where they change.
std::map<std::string, model::CpuSet> new_pins(const std::vector<model::Action>& actions) {
  std::map<std::string, model::CpuSet> pins;
  for (const model::Action& action : actions) {
    if (action.attribute() != model::Attribute::cpus) continue;
    const auto* cpus = action.sets<model::CpuSet>();
    pins[*action.workload()] = cpus != nullptr ? *cpus : model::CpuSet();
  }
  return pins;
}

model::CpuSet nodes_of(const model::Topology& topology, const model::CpuSet& cpus) {
  model::CpuSet nodes;
  for (const model::Cpu& cpu : topology.cpus()) {
    if (cpus.contains(cpu.cpu)) nodes.insert(cpu.numa);
  }
  return nodes;
}

// The NUMA nodes that memory beside these vCPUs is bound to. Nodes without memory are left out, because the
// kernel refuses them; nodes without vCPUs are near no pin. Empty where that leaves none, or all of the
// host's, which is no bond.
model::CpuSet bond_of(const model::Topology& topology, const model::CpuSet& cpus) {
  const model::CpuSet& all = topology.nodes_to_bind();
  const model::CpuSet nodes = nodes_of(topology, cpus) & all;
  return nodes == all ? model::CpuSet() : nodes;
}

// Why the memory of a bound workload is to be bound no more.
std::string why_free(const model::Workload& workload, const PlacementSettings& settings,
                     const model::Topology& topology, const model::CpuSet& cpus) {
  if (!settings.memory_nodes) return "placement.memory_nodes is false";
  if (workload.workload_class != model::WorkloadClass::latency_sensitive) return "it is best-effort now";
  if (workload.fixed.memory_nodes) return "berth cannot bind its memory";
  if (cpus.empty()) return "it is not pinned any more";
  const model::CpuSet nodes = nodes_of(topology, cpus);
  if (nodes.intersects(topology.nodes_to_bind())) return "its vCPUs are on every NUMA node that has memory";
  return fmt::format("its vCPUs {} are on NUMA node{} {} without memory", cpus.to_string(),
                     nodes.size() == 1 ? "" : "s", nodes.to_string());
}

}  // namespace

void follow_pins(const model::Snapshot& snapshot, const PlacementSettings& settings,
                 std::vector<model::Action>& actions) {
  const bool any_bound =
      std::any_of(snapshot.workloads.begin(), snapshot.workloads.end(),
                  [](const model::Workload& workload) { return !workload.memory_nodes.empty(); });
  if (!settings.memory_nodes && !any_bound) return;
  const auto pins = new_pins(actions);
  for (const model::Workload* workload : workloads_by_id(snapshot)) {
    const bool sensitive = workload->workload_class == model::WorkloadClass::latency_sensitive;
    const bool follows = settings.memory_nodes && sensitive && !workload->fixed.memory_nodes;
    if (!follows && workload->memory_nodes.empty()) continue;
    const auto pin = pins.find(workload->id);
    const model::CpuSet& cpus = pin == pins.end() ? workload->cpus : pin->second;
    const model::CpuSet nodes = follows ? bond_of(snapshot.topology, cpus) : model::CpuSet();
    if (nodes == workload->memory_nodes) continue;
    model::Action::What what = model::GiveBack{workload->id, model::Attribute::memory_nodes};
    std::string reason;
    if (!nodes.empty()) {
      what = model::Set{workload->id, model::MemoryNodes{nodes}};
      reason = fmt::format("its vCPUs {} are on NUMA node{} {}", cpus.to_string(),
                           nodes.size() == 1 ? "" : "s", nodes.to_string());
    } else {
      reason = why_free(*workload, settings, snapshot.topology, cpus);
    }
    actions.push_back(
        {.what = std::move(what), .policy = "placement", .decision = {}, .reason = std::move(reason)});
  }
}

}  // namespace berth::policies
