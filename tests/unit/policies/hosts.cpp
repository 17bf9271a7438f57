// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/hosts.h"

#include <utility>

namespace berth::policies::testing {

std::vector<model::Cpu> cpus_of(const HostShape& shape) {
  std::vector<model::Cpu> cpus;
  const int cores = shape.sockets * shape.llcs_per_socket * shape.cores_per_llc;
  for (int thread = 0; thread < shape.threads_per_core; ++thread) {
    for (int core = 0; core < cores; ++core) {
      const int llc = core / shape.cores_per_llc;
      const int socket = llc / shape.llcs_per_socket;
      cpus.push_back({.cpu = thread * cores + core,
                      .core = core,
                      .llc = llc,
                      .numa = socket,
                      .socket = socket,
                      .online = true,
                      .allowed = true,
                      .efficiency = {}});
    }
  }
  return cpus;
}

HostShape two_domains() { return {.llcs_per_socket = 2, .cores_per_llc = 2}; }

model::Topology host(const HostShape& shape) { return model::Topology::make(cpus_of(shape)).value(); }

model::Topology hybrid_host() {
  std::vector<model::Cpu> cpus;
  for (int cpu = 0; cpu < 8; ++cpu)
    cpus.push_back(
        {.cpu = cpu, .core = cpu < 4 ? cpu / 2 : cpu - 2, .llc = 0, .efficiency = cpu < 4 ? 1 : 0});
  return model::Topology::make(cpus).value();
}

model::CpuSet cpus(const std::string& cpulist) { return model::CpuSet::parse(cpulist).value(); }

model::CpuSet given_out(const model::Topology& topology, const InterferenceSettings& settings) {
  const model::CpuSet rest = topology.usable() - settings.reserved_cpus;
  return settings.reserved == Reserved::shared || rest.empty() ? topology.usable() : rest;
}

model::Snapshot snapshot_of(model::Topology topology) {
  return {.host = "test",
          .time = 1000,
          .load1 = 0,
          .topology = std::move(topology),
          .memory = {},
          .services = {},
          .workloads = {},
          .pending = {},
          .spark_apps = {},
          .straggler_seen_at = {}};
}

model::Workload latency_sensitive(const std::string& id, int vcpus, double created) {
  model::Workload workload;
  workload.id = id;
  workload.service = id;
  workload.workload_class = model::WorkloadClass::latency_sensitive;
  workload.vcpus = vcpus;
  workload.isolation = model::Isolation::vcpus;
  workload.created = created;
  return workload;
}

model::Workload best_effort(const std::string& id, double cores_used) {
  model::Workload workload;
  workload.id = id;
  workload.service = id;
  workload.usage = {{.time = 999,
                     .cpu_cores = cores_used,
                     .memory_bytes = 0,
                     .progress = {},
                     .runq_latency_us = {},
                     .runq_latency_p50_us = {},
                     .llc_mpki = {}}};
  return workload;
}

model::Workload pinned(model::Workload workload, const std::string& cpulist) {
  workload.cpus = cpus(cpulist);
  return workload;
}

void apply(const model::Plan& plan, model::Snapshot& snapshot) {
  for (const model::Action& action : plan.actions) {
    for (model::Workload& workload : snapshot.workloads) {
      if (action.workload() == nullptr || *action.workload() != workload.id) continue;
      if (const auto* pin = action.sets<model::CpuSet>()) workload.cpus = *pin;
      if (action.gives_back(model::Attribute::cpus)) workload.cpus = {};
    }
    if (action.attribute() != model::Attribute::cpu_idle) continue;
    const auto* priority = action.sets<model::LowPriority>();
    for (model::BestEffortGroup& group : snapshot.groups) {
      if (group.id == *action.workload())
        group.held = priority != nullptr ? std::optional(*priority) : std::nullopt;
    }
  }
  const auto sharing = without_own_vcpus(plan);
  for (model::Workload& workload : snapshot.workloads) {
    workload.shares = !workload.cpus.empty() && sharing.contains(workload.id) &&
                      workload.workload_class == model::WorkloadClass::latency_sensitive;
  }
}

void apply_and_date(const model::Plan& plan, model::Snapshot& snapshot) {
  apply(plan, snapshot);
  for (const model::Action& action : plan.actions) {
    for (model::Workload& workload : snapshot.workloads) {
      if (action.workload() != nullptr && *action.workload() == workload.id)
        workload.pinned_at = snapshot.time;
    }
  }
}

std::vector<std::string> pins(const std::vector<model::Action>& actions) {
  std::vector<std::string> list;
  for (const model::Action& action : actions) {
    if (const auto* pin = action.sets<model::CpuSet>()) {
      list.push_back(*action.workload() + "=" + pin->to_string());
    }
    if (action.gives_back(model::Attribute::cpus)) list.push_back(*action.workload() + "=");
  }
  return list;
}

std::vector<std::string> pins(const model::Plan& plan) { return pins(plan.actions); }

}  // namespace berth::policies::testing
