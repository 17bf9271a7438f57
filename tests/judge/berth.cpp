// SPDX-License-Identifier: Apache-2.0
#include "tests/judge/berth.h"

#include "model/topology.h"
#include "policies/after.h"
#include "policies/decide.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::judge {

namespace {

constexpr double kStart = 1'700'000'000;  // epoch seconds
constexpr double kAge_s = 3600;           // of the workloads at the start
constexpr std::size_t kSamples = 60;      // sampling.history

// The id is the group's number, so that workloads ascend.
std::string id_of(int group) { return fmt::format("w/{:03}", group); }

}  // namespace

Berth::Berth(const Host& host, const policies::InterferenceSettings& settings,
             const std::map<std::string, model::ServiceProfile>& learned, bool learns)
    : host_(host),
      snapshot_(policies::testing::snapshot_of(topology_of(host.places))),
      learns_(learns),
      learner_("/nonexistent", "/nonexistent", warnings_) {
  settings_.interference = settings;
  snapshot_.time = kStart;
  snapshot_.services = learned;
  for (int group = 0; group < host.groups(); ++group) {
    snapshot_.workloads.push_back(host.is_batch(group)
                                      ? policies::testing::best_effort(id_of(group))
                                      : policies::testing::latency_sensitive(
                                            id_of(group), host.services[group].vcpus, kStart - kAge_s));
    snapshot_.workloads.back().usage = {};
    snapshot_.workloads.back().isolation.reset();
    if (host.is_batch(group)) snapshot_.groups.push_back({.id = id_of(group)});
  }
}

void Berth::decide(Kernel& kernel, const std::vector<Reading>& readings) {
  snapshot_.time += 1;
  for (int group = 0; group < host_.groups(); ++group) {
    model::Workload& workload = snapshot_.workloads[group];
    const Reading& reading = readings[group];
    model::UsageSample sample;
    sample.time = snapshot_.time;
    sample.cpu_cores = reading.cores;
    if (reading.delay_us) sample.runq_latency_us = static_cast<float>(*reading.delay_us);
    workload.usage.add(sample, kSamples);
    workload.cpi = reading.cpi;
  }
  if (learns_) learner_.take(snapshot_, settings_.interference);
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
    if (host_.is_batch(number) && !batch_pins_.empty()) mask = batch_pins_[number - host_.services.size()];
    const auto* batch = model::find_group(snapshot_, workload.id);
    const auto priority = batch != nullptr ? batch->held : std::nullopt;
    const bool idle = priority == model::LowPriority::idle;
    const double weight = priority == model::LowPriority::weight ? kLeastWeight : Group().weight;
    if (group.mask == mask && group.idle == idle && group.weight == weight) continue;
    group.mask = mask;
    group.idle = idle;
    group.weight = weight;
    kernel.set_group(number, group);
  }
}

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

}  // namespace berth::judge
