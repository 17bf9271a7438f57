// SPDX-License-Identifier: Apache-2.0
#include "policies/interrupts.h"

#include <array>
#include <set>

namespace berth::policies {

namespace {

using model::CpuSet;

// All vCPUs whose number `of` (NUMA node, socket) is that of one of `cpus`.
CpuSet around(const CpuSet& cpus, const model::Topology& topology, int model::Cpu::*of) {
  std::set<int> numbers;
  for (const model::Cpu& cpu : topology.cpus()) {
    if (cpus.contains(cpu.cpu)) numbers.insert(cpu.*of);
  }
  CpuSet found;
  for (const model::Cpu& cpu : topology.cpus()) {
    if (numbers.contains(cpu.*of)) found.insert(cpu.cpu);
  }
  return found;
}

}  // namespace

CpuSet online_of(const model::Topology& topology) {
  CpuSet online;
  for (const model::Cpu& cpu : topology.cpus()) {
    if (cpu.online) online.insert(cpu.cpu);
  }
  return online;
}

CpuSet owned_by_instances(const model::Plan& plan, const model::Snapshot& snapshot) {
  CpuSet owned;
  if (!plan.findings.interference) return owned;
  for (const auto& [id, instance] : plan.findings.interference->instances) {
    const model::Workload* workload = find_workload(snapshot, id);
    if (workload == nullptr) continue;
    owned |= instance.cpus;
    // Where it is until it has moved.
    if (!instance.cpus.empty() && !workload->shares) owned |= workload->cpus;
  }
  return owned;
}

std::optional<CpuSet> off_owned(const CpuSet& cpus, const CpuSet& owned, const CpuSet& of_others,
                                const model::Topology& topology) {
  if (!cpus.intersects(owned)) return std::nullopt;
  const CpuSet left = online_of(topology) - owned;
  if (cpus.intersects(left)) return cpus - owned;
  const std::array places{around(cpus, topology, &model::Cpu::numa),
                          around(cpus, topology, &model::Cpu::socket), topology.all()};
  for (const CpuSet& candidates : {left - of_others, left}) {
    for (const CpuSet& place : places) {
      if (candidates.intersects(place)) return candidates & place;
    }
  }
  return std::nullopt;
}

}  // namespace berth::policies
