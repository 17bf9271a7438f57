// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/ground_truth/fleet.h"

#include "policies/decide.h"
#include "policies/interference/learning/fit.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

namespace berth::policies::testing {

namespace {

constexpr double kTick_s = 10;
constexpr double kStart_s = 1790000000;
constexpr double kDay_s = 7200;  // short, so that one lesson has more than one
constexpr int kTimesOfDay = 6;
constexpr double kUnitOfWork = 1e15;  // instructions

// Misses of SPEC CPU2006 reach from a ten-thousandth to some hundredths of an instruction (Jaleel, "Memory
// characterization of workloads using instrumentation-driven simulation", 2007). Its working sets reach to
// tens of MiB.
Software draw_software(Draws& draws) {
  return {.core_cpi = log_uniform(draws, 0.3, 1.2),
          .reuse = log_uniform(draws, 0.0001, 0.03),
          .alpha = 0.3 + 0.4 * draws.fraction(),
          .working_set_mib = log_uniform(draws, 1, 64),
          .compulsory = log_uniform(draws, 0.00002, 0.003),
          .overlap = log_uniform(draws, 1.5, 6)};
}

// vCPUs of different cores of the first domain, as far as there are.
model::CpuSet cores_apart(const model::Topology& topology, int vcpus) {
  model::CpuSet where;
  for (const model::Cpu& cpu : topology.cpus()) {
    if (static_cast<int>(where.size()) < vcpus) where.insert(cpu.cpu);
  }
  return where;
}

model::Workload& find(model::Snapshot& snapshot, const std::string& id) {
  for (model::Workload& workload : snapshot.workloads) {
    if (workload.id == id) return workload;
  }
  throw std::logic_error("no workload " + id);
}

// One tick of the daemon: the figures of the machine with the noise of a measurement.
void measure(const Lesson& lesson, const std::vector<Figures>& figures, const Mix& mix,
             std::map<std::string, double>& done, Draws& draws, model::Snapshot& snapshot) {
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const bool is_batch = i >= mix.instances.size();
    model::Workload& workload =
        find(snapshot, is_batch ? batch_id(i - mix.instances.size()) : mix.instances[i].id);
    set_use(workload, snapshot.time, figures[i].cores);
    if (lesson.response == model::Response::cpi) {
      workload.cpi = figures[i].cpi * (1 + lesson.noise * normal(draws));
      workload.llc_misses_per_s = figures[i].misses;
    } else if (lesson.response == model::Response::cost && !is_batch) {
      double& fraction = done[workload.id];
      fraction += figures[i].instructions * kTick_s / kUnitOfWork * (1 + lesson.noise * normal(draws));
      workload.progress = {{.time = snapshot.time, .fraction = fraction}};
    }
  }
}

}  // namespace

std::string batch_id(std::size_t kind) { return fmt::format("batch-{}", kind); }

void set_use(model::Workload& workload, double time, double cores) {
  model::UsageSample before;
  before.time = time - kTick_s;
  before.cpu_cores = cores;
  model::UsageSample now = before;
  now.time = time;
  workload.usage = {before, now};
}

Figures alone(const World& world, const Service& service, int vcpus, double load) {
  return steady_state(world.hardware, world.topology,
                      {{.software = service.software,
                        .where = cores_apart(world.topology, vcpus),
                        .load = load,
                        .threads = 0}})[0];
}

std::vector<double> batch_alone(const World& world) {
  std::vector<double> instructions;
  for (const Software& software : world.batch) {
    const Running one{
        .software = software, .where = {world.topology.usable().first()}, .load = std::nullopt, .threads = 1};
    instructions.push_back(steady_state(world.hardware, world.topology, {one})[0].instructions);
  }
  return instructions;
}

World make_world(const WorldSettings& settings) {
  Draws draws(settings.seed);
  World world;
  world.shape = settings.shape;
  world.hardware.llc_mib = settings.llc_mib;
  // More cores come with more channels.
  world.hardware.memory_bytes_s = 4e9 * settings.shape.llcs_per_socket * settings.shape.cores_per_llc;
  world.topology = host(settings.shape);
  for (int i = 0; i < settings.services; ++i) {
    Service service;
    service.software = draw_software(draws);
    const double use = log_uniform(draws, 0.03, 0.55);
    service.load = use * world.hardware.clock_hz / alone(world, service, 1, 1e6).cpi;
    service.phase = 0.2 * draws.fraction();
    if (settings.alike && i > 0) service = world.services[0];
    service.name = fmt::format("service-{}", i);
    world.services.push_back(std::move(service));
  }
  for (int i = 0; i < 3; ++i) world.batch.push_back(draw_software(draws));
  return world;
}

double load_at(const Service& service, double day) {
  return 1 + 2.0 / 3 * std::sin(2 * std::numbers::pi * (day + service.phase));
}

int draw_vcpus(Draws& draws) {
  const double which = draws.fraction();
  return which < 0.35 ? 1 : which < 0.75 ? 2 : 4;
}

std::vector<double> draw_batch(const World& world, int cpus, Draws& draws) {
  std::vector<double> threads;
  for (std::size_t i = 0; i < world.batch.size(); ++i)
    threads.push_back(2.0 * cpus / static_cast<double>(world.batch.size()) * draws.fraction());
  return threads;
}

Mix draw_mix(const World& world, Draws& draws, const std::string& prefix) {
  Mix mix;
  const int cpus = static_cast<int>(world.topology.usable().size());
  const double share = 0.4 + 0.35 * draws.fraction();
  int owned = 0;
  while (true) {
    const int vcpus = draw_vcpus(draws);
    if (owned + vcpus > share * cpus) break;
    owned += vcpus;
    Mix::Instance instance;
    instance.id = fmt::format("{}-{:03}", prefix, mix.instances.size());
    instance.service = static_cast<std::size_t>(draws.number(0, static_cast<int>(world.services.size()) - 1));
    instance.vcpus = vcpus;
    const Service& service = world.services[instance.service];
    instance.measured_cores =
        alone(world, service, vcpus, service.load).cores * std::max(0.3, 1 + 0.1 * normal(draws));
    mix.instances.push_back(std::move(instance));
  }
  mix.batch_threads = draw_batch(world, cpus - owned, draws);
  return mix;
}

model::Snapshot unplaced(const World& world, const Mix& mix) {
  model::Snapshot snapshot = snapshot_of(world.topology);
  snapshot.time = kStart_s;
  for (std::size_t i = 0; i < mix.instances.size(); ++i) {
    const Mix::Instance& instance = mix.instances[i];
    auto workload = latency_sensitive(instance.id, instance.vcpus, static_cast<double>(i));
    workload.service = world.services[instance.service].name;
    set_use(workload, snapshot.time, instance.measured_cores);
    snapshot.workloads.push_back(std::move(workload));
  }
  for (std::size_t i = 0; i < mix.batch_threads.size(); ++i)
    snapshot.workloads.push_back(best_effort(batch_id(i), mix.batch_threads[i]));
  std::sort(snapshot.workloads.begin(), snapshot.workloads.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return snapshot;
}

Places places_of(const model::Snapshot& pinned) {
  Places places;
  for (const model::Workload& workload : pinned.workloads) places[workload.id] = workload.cpus;
  return places;
}

std::vector<Figures> truth_of(const World& world, const Mix& mix, const Places& places, double day,
                              const std::vector<double>& swing) {
  const auto where = [&](const std::string& id) {
    const auto place = places.find(id);
    return place == places.end() || place->second.empty() ? world.topology.usable() : place->second;
  };
  std::vector<Running> running;
  for (std::size_t i = 0; i < mix.instances.size(); ++i) {
    const Mix::Instance& instance = mix.instances[i];
    const Service& service = world.services[instance.service];
    running.push_back({.software = service.software,
                       .where = where(instance.id),
                       .load = service.load * load_at(service, day) * (swing.empty() ? 1 : swing[i]),
                       .threads = 0});
    if (static_cast<int>(running.back().where.size()) != instance.vcpus)
      running.back().floating = instance.vcpus;
  }
  for (std::size_t i = 0; i < mix.batch_threads.size(); ++i) {
    const std::size_t at = mix.instances.size() + i;
    running.push_back({.software = world.batch[i],
                       .where = where(batch_id(i)),
                       .load = std::nullopt,
                       .threads = mix.batch_threads[i] * (swing.empty() ? 1 : swing[at])});
  }
  return steady_state(world.hardware, world.topology, running);
}

Interference interference_of(const World& world, const Mix& mix, const model::Snapshot& pinned) {
  Interference mean;
  for (int i = 0; i < kTimesOfDay; ++i) {
    const double day = static_cast<double>(i) / kTimesOfDay;
    const auto figures = truth_of(world, mix, places_of(pinned), day);
    for (std::size_t at = 0; at < mix.instances.size(); ++at) {
      const Mix::Instance& instance = mix.instances[at];
      const Service& service = world.services[instance.service];
      const Figures without = alone(world, service, instance.vcpus, service.load * load_at(service, day));
      const double slowdown = figures[at].cpi / without.cpi - 1;
      mean.extra_cores += (figures[at].cores - without.cores) /
                          static_cast<double>(world.topology.usable().size()) / kTimesOfDay;
      mean.slowdown += slowdown / static_cast<double>(mix.instances.size()) / kTimesOfDay;
      mean.worst = std::max(mean.worst, slowdown);
    }
  }
  return mean;
}

Training::Training(const World& world, const Lesson& lesson, std::uint64_t seed)
    : learner_("/nonexistent", "/nonexistent", warnings_) {
  Draws draws(seed);
  std::map<std::string, double> done;
  double time = kStart_s;
  for (int i = 0; i < lesson.mixes; ++i) {
    const Mix mix = draw_mix(world, draws, fmt::format("seen-{:04}", i));
    model::Snapshot snapshot = place(world, mix, {}, lesson.settings);
    for (int tick = 0; tick < lesson.ticks; ++tick) {
      time += kTick_s;
      snapshot.time = time;
      std::vector<double> swing;
      for (std::size_t j = 0; j < mix.instances.size(); ++j)
        swing.push_back(std::max(0.2, 1 + 0.05 * normal(draws)));
      for (std::size_t j = 0; j < mix.batch_threads.size(); ++j) swing.push_back(2 * draws.fraction());
      const auto figures = truth_of(world, mix, places_of(snapshot), std::fmod(time / kDay_s, 1), swing);
      measure(lesson, figures, mix, done, draws, snapshot);
      for (const auto& message : learner_.take(snapshot, lesson.settings))
        changes_ += message.text.find("has changed") != std::string::npos ? 1 : 0;
    }
  }
  // Models change once a minute. A snapshot without any use teaches nothing.
  model::Snapshot idle = snapshot_of(world.topology);
  idle.time = time + daemon::Learner::kJudge_s;
  learner_.take(idle, lesson.settings);
  const auto profiles = model::parse_profiles(learner_.profiles_json("")).value();
  const auto models = judge_all(profiles, {}, learning_settings(lesson.settings));
  for (const Service& service : world.services) {
    const auto* used = model_in_use(models, service.name);
    accepted_ += used != nullptr && used->accepted ? 1 : 0;
    bounded_ += used != nullptr && used->bounded ? 1 : 0;
  }
}

model::Snapshot place(const World& world, const Mix& mix,
                      const std::map<std::string, model::ServiceProfile>& models,
                      const InterferenceSettings& settings) {
  model::Snapshot snapshot = unplaced(world, mix);
  snapshot.services = models;
  PolicySettings all;
  all.interference = settings;
  apply(decide(snapshot, all, {"interference"}), snapshot);
  return snapshot;
}

model::Snapshot place_at_random(const World& world, const Mix& mix, Draws& draws) {
  model::Snapshot snapshot = unplaced(world, mix);
  std::vector<std::vector<int>> free;
  for (const model::Domain& domain : world.topology.domains(model::DomainKind::llc)) {
    auto& cpus = free.emplace_back(domain.cpus.to_vector());
    for (std::size_t i = cpus.size() - 1; i > 0; --i)
      std::swap(cpus[i], cpus[static_cast<std::size_t>(draws.number(0, static_cast<int>(i)))]);
  }
  for (const Mix::Instance& instance : mix.instances) {
    std::vector<std::vector<int>*> fit;
    for (auto& cpus : free) {
      if (static_cast<int>(cpus.size()) >= instance.vcpus) fit.push_back(&cpus);
    }
    auto& cpus = *fit.at(static_cast<std::size_t>(draws.number(0, static_cast<int>(fit.size()) - 1)));
    model::Workload& workload = find(snapshot, instance.id);
    for (int i = 0; i < instance.vcpus; ++i) {
      workload.cpus.insert(cpus.back());
      cpus.pop_back();
    }
  }
  model::CpuSet pool;
  for (const auto& cpus : free) {
    for (const int cpu : cpus) pool.insert(cpu);
  }
  for (std::size_t i = 0; i < mix.batch_threads.size(); ++i) find(snapshot, batch_id(i)).cpus = pool;
  return snapshot;
}

}  // namespace berth::policies::testing
