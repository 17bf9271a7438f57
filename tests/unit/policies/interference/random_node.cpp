// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/random_node.h"

#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace berth::policies::testing {

namespace {

class Drawer : private Draws {
 public:
  using Draws::Draws;

  RandomCase draw_small() {
    draw_settings();
    InterferenceSettings& settings = settings_.interference;
    settings.search = Search::optimal;
    settings.max_moves = number(0, 3);
    settings.min_gain = chance(0.5) ? 0.05 : 0.3 * fraction();
    settings.be_min_cpus = chance(0.8) ? 1 : number(0, 3);
    HostShape shape;
    int vcpus = 0;
    do {
      shape = {.sockets = number(1, 2),
               .llcs_per_socket = number(1, 3),
               .cores_per_llc = number(1, 4),
               .threads_per_core = chance(0.1) ? 4 : number(1, 2)};
      vcpus = shape.sockets * shape.llcs_per_socket * shape.cores_per_llc * shape.threads_per_core;
    } while (vcpus > 8 || (vcpus < 6 && chance(0.8)));
    RandomCase result{.snapshot = snapshot_of(draw_topology(shape)), .settings = settings_};
    model::Snapshot& snapshot = result.snapshot;
    for (const int cpu : snapshot.topology.usable()) {
      if (chance(0.03)) result.settings.interference.reserved_cpus.insert(cpu);
    }
    draw_services(snapshot);
    const int instances = chance(0.7) ? number(3, 4) : number(1, 2);
    const int pending = chance(0.1) ? 1 : 0;
    const int best_effort = number(0, 2);
    for (int i = 0; i < instances - pending + best_effort; ++i) {
      model::Workload workload = draw_workload(snapshot, i);
      const bool sensitive = i < instances - pending;
      workload.workload_class =
          sensitive ? model::WorkloadClass::latency_sensitive : model::WorkloadClass::best_effort;
      if (sensitive && !chance(0.05)) workload.vcpus = number(1, chance(0.8) ? 2 : 4);
      if (sensitive && !workload.cpus.empty() && chance(0.8))
        workload.cpus = draw_pin(snapshot.topology, *workload.vcpus);
      snapshot.workloads.push_back(std::move(workload));
    }
    std::sort(snapshot.workloads.begin(), snapshot.workloads.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    if (pending > 0) {
      model::PendingWorkload& it = snapshot.pending.emplace_back();
      it.id = "pending";
      it.service = service();
      it.vcpus = number(1, 2);
    }
    return result;
  }

  RandomCase draw() {
    draw_settings();
    const HostShape shape{.sockets = number(1, 2),
                          .llcs_per_socket = number(1, 3),
                          .cores_per_llc = number(1, 6),
                          .threads_per_core = chance(0.1) ? 4 : number(1, 2)};
    RandomCase result{.snapshot = snapshot_of(draw_topology(shape)), .settings = settings_};
    model::Snapshot& snapshot = result.snapshot;
    for (const int cpu : snapshot.topology.usable()) {
      if (chance(0.05)) result.settings.interference.reserved_cpus.insert(cpu);
    }
    draw_services(snapshot);
    const int count = number(1, 14);
    for (int i = 0; i < count; ++i) snapshot.workloads.push_back(draw_workload(snapshot, i));
    std::sort(snapshot.workloads.begin(), snapshot.workloads.end(),
              [](const auto& a, const auto& b) { return a.id < b.id; });
    for (int i = number(-2, 2); i > 0; --i) {
      model::PendingWorkload pending;
      pending.id = "pending-" + std::to_string(i);
      pending.service = service();
      pending.workload_class =
          chance(0.8) ? model::WorkloadClass::latency_sensitive : model::WorkloadClass::best_effort;
      if (chance(0.9)) pending.vcpus = request();
      snapshot.pending.push_back(std::move(pending));
    }
    return result;
  }

  RandomCase draw_hybrid() {
    RandomCase result = draw();
    std::vector<model::Cpu> cpus = result.snapshot.topology.cpus();
    const int kinds = number(2, 3);
    const bool by_cache = chance(0.5);
    const int from = number(0, 2);
    for (model::Cpu& cpu : cpus) {
      const int kind = (by_cache ? cpu.llc.value_or(cpu.socket) : cpu.core) + from;
      cpu.efficiency = kind % kinds;
      if (cpu.efficiency == 0 && chance(0.1)) cpu.efficiency.reset();
    }
    result.snapshot.topology = model::Topology::make(std::move(cpus)).value();
    // Half of the pins lie on one kind.
    for (model::Workload& workload : result.snapshot.workloads) {
      if (workload.cpus.empty() || chance(0.5)) continue;
      const int kind = result.snapshot.topology.find(workload.cpus.first())->efficiency.value_or(-1);
      for (const model::Cpu& cpu : result.snapshot.topology.cpus())
        if (cpu.efficiency.value_or(-1) != kind) workload.cpus.erase(cpu.cpu);
      if (chance(0.7)) workload.vcpus = static_cast<int>(workload.cpus.size());
    }
    return result;
  }

 private:
  std::string service() { return "service-" + std::to_string(number(0, 3)); }
  int request() { return chance(0.93) ? number(1, 4) : number(-1, 16); }

  void draw_settings() {
    InterferenceSettings& settings = settings_.interference;
    settings.weighting = chance(0.5) ? Weighting::overlap : Weighting::request;
    settings.shared_domain = chance(0.75) ? model::DomainKind::llc : model::DomainKind::socket;
    settings.window_step = number(1, 3);
    settings.isolation = model::Isolation::vcpus;
    settings.allow_cross_socket = chance(0.3);
    settings.be_min_cpus = chance(0.7) ? 1 : number(0, 5);
    settings.be_avoid_siblings = chance(0.4);
    settings.reserved = chance(0.5) ? Reserved::strict : Reserved::shared;
    settings.default_model = {.b0 = 0, .k1 = fraction(), .k2 = fraction()};
  }

  model::Topology draw_topology(const HostShape& shape) {
    std::vector<model::Cpu> cpus = cpus_of(shape);
    const bool adjacent_siblings = chance(0.3);
    const bool shuffled_numbers = chance(0.1);
    const double holes = chance(0.4) ? 0.15 : 0.0;
    const bool llc_known = chance(0.9);
    if (adjacent_siblings) {
      std::stable_sort(cpus.begin(), cpus.end(),
                       [](const auto& a, const auto& b) { return a.core < b.core; });
      for (std::size_t i = 0; i < cpus.size(); ++i) cpus[i].cpu = static_cast<int>(i);
    }
    if (shuffled_numbers) {
      for (std::size_t i = cpus.size() - 1; i > 0; --i) {
        std::swap(cpus[i].cpu, cpus[static_cast<std::size_t>(number(0, static_cast<int>(i)))].cpu);
      }
    }
    for (model::Cpu& cpu : cpus) {
      cpu.online = !chance(holes);
      cpu.allowed = !chance(holes / 2);
      if (!llc_known) cpu.llc.reset();
    }
    cpus.front().online = cpus.front().allowed = true;
    return model::Topology::make(std::move(cpus)).value();
  }

  void draw_services(model::Snapshot& snapshot) {
    for (int i = 0; i < 4; ++i) {
      if (chance(0.3)) continue;
      model::ServiceProfile profile;
      if (chance(0.6)) profile.pressure = chance(0.1) ? 0.0 : fraction();
      if (chance(0.6))
        profile.model = model::InterferenceModel{.b0 = fraction(), .k1 = fraction(), .k2 = fraction()};
      snapshot.services["service-" + std::to_string(i)] = profile;
    }
  }

  model::CpuSet some_of(const model::CpuSet& set, double p) {
    model::CpuSet some;
    for (const int cpu : set) {
      if (chance(p)) some.insert(cpu);
    }
    return some;
  }

  model::Workload draw_workload(const model::Snapshot& snapshot, int index) {
    model::Workload workload;
    workload.id = "workload-" + std::to_string(number(0, 9)) + "-" + std::to_string(index);
    workload.service = service();
    workload.created = number(0, 4);
    if (chance(0.75)) workload.workload_class = model::WorkloadClass::latency_sensitive;
    if (chance(0.97)) workload.vcpus = request();
    const model::Topology& topology = snapshot.topology;
    if (chance(0.15)) workload.allowed_cpus = some_of(topology.all(), 0.7);
    if (chance(0.5)) workload.cpus = draw_pin(topology, workload.vcpus.value_or(2));
    if (chance(0.5)) workload.pinned_at = snapshot.time - number(-5, 20);
    for (int i = number(0, 3); i > 0; --i) {
      workload.usage.push_back({.time = snapshot.time - i,
                                .cpu_cores = 3 * fraction(),
                                .memory_bytes = 0,
                                .progress = {},
                                .runq_latency_us = {},
                                .runq_latency_p50_us = {},
                                .llc_mpki = {}});
    }
    return workload;
  }

  // Mostly a pin of the right size in one domain, where some of these stand.
  model::CpuSet draw_pin(const model::Topology& topology, int vcpus) {
    if (chance(0.15)) return some_of(topology.all(), 0.3);
    const auto& domains = topology.domains(settings_.interference.shared_domain);
    const auto at = static_cast<std::size_t>(number(0, static_cast<int>(domains.size()) - 1));
    model::CpuSet cpus = domains[at].cpus;
    while (static_cast<int>(cpus.size()) > std::max(vcpus, 1)) {
      cpus.erase(cpus.to_vector()[static_cast<std::size_t>(number(0, static_cast<int>(cpus.size()) - 1))]);
    }
    return cpus;
  }

  PolicySettings settings_;
};

}  // namespace

RandomCase random_hybrid_case(std::uint64_t seed) { return Drawer(seed).draw_hybrid(); }
RandomCase random_case(std::uint64_t seed) { return Drawer(seed).draw(); }
RandomCase small_case(std::uint64_t seed) { return Drawer(seed).draw_small(); }

}  // namespace berth::policies::testing
