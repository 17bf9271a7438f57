// SPDX-License-Identifier: Apache-2.0
// Snapshots of a host with one cache, four cores and eight vCPUs, tick by tick. vCPU n + 4 is the sibling of
// n.
#pragma once

#include "model/snapshot.h"

#include <stdexcept>
#include <string>

namespace berth::policies::testing {

class SharedHost {
 public:
  SharedHost() {
    std::vector<model::Cpu> cpus;
    for (int cpu = 0; cpu < 8; ++cpu)
      cpus.push_back({.cpu = cpu, .core = cpu % 4, .llc = 0, .efficiency = {}});
    snapshot.topology = *model::Topology::make(cpus);
    snapshot.host = "host-1";
    snapshot.time = 1790000000;
  }

  model::Workload& add(const std::string& id, model::WorkloadClass workload_class,
                       const model::CpuSet& cpus) {
    auto& workload = snapshot.workloads.emplace_back();
    workload.id = id;
    workload.service = id.substr(0, id.find('-'));
    workload.workload_class = workload_class;
    if (workload_class == model::WorkloadClass::latency_sensitive)
      workload.vcpus = static_cast<int>(cpus.size());
    workload.cpus = cpus;
    workload.created = snapshot.time;
    return workload;
  }
  model::Workload& of(const std::string& id) {
    for (auto& workload : snapshot.workloads) {
      if (workload.id == id) return workload;
    }
    throw std::out_of_range(id);
  }

  // The next tick, before anything is used.
  void next() { snapshot.time += 5; }
  void use(const std::string& id, double cores) {
    model::UsageSample sample;
    sample.time = snapshot.time;
    sample.cpu_cores = cores;
    of(id).usage.push_back(sample);
  }

  model::Snapshot snapshot;
};

}  // namespace berth::policies::testing
