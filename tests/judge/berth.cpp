// SPDX-License-Identifier: Apache-2.0
// berth's own decisions on a simulated host, from what berthd would read of it each second.
#include "model/standing.h"
#include "model/topology.h"
#include "policies/after.h"
#include "policies/decide.h"
#include "tests/judge/rows.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::judge {

namespace {

constexpr double kStart = 1'700'000'000;  // epoch seconds

// The id is the group's number, so that workloads ascend.
std::string id_of(int group) { return fmt::format("w/{:03}", group); }

class Berth {
 public:
  Berth(const Host& host, policies::Search search)
      : host_(host), snapshot_(policies::testing::snapshot_of(topology_of(host.places))) {
    settings_.interference.search = search;
    snapshot_.time = kStart;
    for (int group = 0; group < host.groups(); ++group) {
      snapshot_.workloads.push_back(
          host.is_batch(group)
              ? policies::testing::best_effort(id_of(group))
              : policies::testing::latency_sensitive(id_of(group), host.services[group].vcpus, kStart));
      snapshot_.workloads.back().usage = {};
    }
  }

  void decide(Kernel& kernel, const std::vector<double>& used_s) {
    snapshot_.time += 1;
    for (int group = 0; group < host_.groups(); ++group) {
      auto& usage = snapshot_.workloads[group].usage;
      model::UsageSample sample;
      sample.time = snapshot_.time;
      sample.cpu_cores = used_s[group];
      usage.add(sample, kSamples);
    }
    const model::Plan plan = policies::decide(snapshot_, settings_);
    standing_ = policies::after(std::move(standing_), snapshot_, plan, policies::assumed(plan), settings_);
    model::take_off(snapshot_);
    model::put_on(standing_, snapshot_);
    for (int number = 0; number < host_.groups(); ++number) {
      const model::Workload& workload = snapshot_.workloads[number];
      Group group = kernel.group(number);
      const model::CpuSet& cpus = workload.cpus.empty() ? snapshot_.topology.all() : workload.cpus;
      CpuMask mask;
      for (const int cpu : cpus) mask.set(static_cast<std::size_t>(cpu));
      const bool idle = workload.cpu_idle;
      if (group.mask == mask && group.idle == idle) continue;
      group.mask = mask;
      group.idle = idle;
      kernel.set_group(number, group);
    }
  }

 private:
  static constexpr std::size_t kSamples = 60;  // sampling.history

  const Host& host_;
  policies::PolicySettings settings_;
  model::Snapshot snapshot_;
  model::Standing standing_;
};

Way::Change make(const Host& host, policies::Search search) {
  const auto berth = std::make_shared<Berth>(host, search);
  return [berth](Kernel& kernel, const std::vector<double>& used_s) { berth->decide(kernel, used_s); };
}

}  // namespace

model::Topology topology_of(const std::vector<CpuPlace>& places) {
  std::vector<model::Cpu> cpus;
  const bool hybrid =
      std::any_of(places.begin(), places.end(), [](const auto& it) { return it.capacity < 1; });
  for (int cpu = 0; cpu < static_cast<int>(places.size()); ++cpu) {
    auto& it = cpus.emplace_back();
    it.cpu = cpu;
    it.core = places[cpu].core;
    it.llc = places[cpu].domain;
    it.numa = places[cpu].socket;
    it.socket = places[cpu].socket;
    if (hybrid) it.efficiency = places[cpu].capacity < 1 ? 0 : 1;
  }
  auto made = model::Topology::make(std::move(cpus));
  if (!made) throw std::logic_error(made.error().message());
  return *made;
}

Way::Change berth_by_window(const Host& host) { return make(host, policies::Search::window); }
Way::Change berth_by_optimum(const Host& host) { return make(host, policies::Search::optimal); }

}  // namespace berth::judge
