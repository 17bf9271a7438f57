// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/ground_truth/baselines.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace berth::policies::testing {

namespace {

// Of one software, or of all instances of a service with the same number of vCPUs in the same part.
struct Kind {
  std::size_t at = 0;  // index of what runs
  double copies = 0;
};

}  // namespace

model::CpuSet take_random(const model::Topology& topology, const model::CpuSet& free, int vcpus,
                          Draws& draws) {
  std::vector<model::CpuSet> fit;
  for (const model::Domain& domain : topology.domains(model::DomainKind::llc)) {
    const model::CpuSet cpus = domain.cpus & free;
    if (static_cast<int>(cpus.size()) >= vcpus) fit.push_back(cpus);
  }
  if (fit.empty()) fit.push_back(free);
  std::vector<int> from =
      fit[static_cast<std::size_t>(draws.number(0, static_cast<int>(fit.size()) - 1))].to_vector();
  if (static_cast<int>(from.size()) < vcpus) return {};
  model::CpuSet taken;
  for (int i = 0; i < vcpus; ++i) {
    const auto at = static_cast<std::size_t>(draws.number(0, static_cast<int>(from.size()) - 1));
    taken.insert(from[at]);
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return taken;
}

model::CpuSet take_packed(const model::Topology& topology, const model::CpuSet& free, int vcpus) {
  std::vector<std::pair<std::size_t, std::vector<model::CpuSet>>> sockets;  // whole free cores: number, which
  for (const model::Domain& socket : topology.sockets()) {
    std::vector<model::CpuSet> cores;
    for (const int cpu : socket.cpus) {
      const model::CpuSet& threads = topology.core_threads(cpu);
      if (threads.first() == cpu && threads.is_subset_of(free)) cores.push_back(threads);
    }
    const std::size_t count = cores.size();
    sockets.emplace_back(count, std::move(cores));
  }
  std::stable_sort(sockets.begin(), sockets.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  model::CpuSet taken;
  for (const auto& [count, cores] : sockets) {
    for (const model::CpuSet& core : cores) {
      if (static_cast<int>(taken.size()) < vcpus) taken |= core;
    }
  }
  return static_cast<int>(taken.size()) < vcpus ? model::CpuSet() : taken;
}

model::CpuSet take_spread(const model::Topology& topology, const model::CpuSet& free, int vcpus) {
  std::vector<model::CpuSet> caches;
  for (const model::Domain& domain : topology.domains(model::DomainKind::llc))
    caches.push_back(domain.cpus & free);
  std::stable_sort(caches.begin(), caches.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  model::CpuSet taken;
  for (model::CpuSet left : caches) {
    while (!left.empty() && static_cast<int>(taken.size()) < vcpus) {
      const auto free_threads = [&](int cpu) { return (topology.core_threads(cpu) & left).size(); };
      const int best = *std::max_element(left.begin(), left.end(), [&](int a, int b) {
        return std::pair(free_threads(a), -a) < std::pair(free_threads(b), -b);
      });
      taken.insert(best);
      left.erase(best);
    }
  }
  return static_cast<int>(taken.size()) < vcpus ? model::CpuSet() : taken;
}

std::size_t parts_of(const World& world, Roams roams) {
  if (roams == Roams::host) return 1;
  const int sockets = world.shape.sockets;
  return static_cast<std::size_t>(roams == Roams::socket ? sockets : sockets * world.shape.llcs_per_socket);
}

// All vCPUs of a part are alike, and so are all its caches. So one core with one cache stands for a part. It
// has its share of the socket's memory bandwidth. Instances that are alike are copies of one.
std::vector<Figures> truth_of_floating(const World& world, const Mix& mix, Roams roams,
                                       const std::vector<std::size_t>& part, const Kernel& kernel,
                                       double day) {
  const HostShape& shape = world.shape;
  const auto parts = static_cast<int>(parts_of(world, roams));
  const int parts_per_socket = std::max(1, parts / shape.sockets);
  Hardware hardware = world.hardware;
  hardware.memory_bytes_s *= static_cast<double>(parts_per_socket) /
                             (static_cast<double>(shape.llcs_per_socket) * shape.cores_per_llc);
  const model::Topology topology = host({.sockets = parts / parts_per_socket,
                                         .llcs_per_socket = parts_per_socket,
                                         .cores_per_llc = 1,
                                         .threads_per_core = shape.threads_per_core});
  const double over = static_cast<double>(world.topology.usable().size()) / parts;
  const double scale = over / shape.threads_per_core;

  std::vector<Running> running;
  std::map<std::tuple<std::size_t, std::size_t, int>, Kind> kinds;  // part, service, vCPUs
  const auto kind_of = [&](std::size_t i) {
    return std::tuple(part[i], mix.instances[i].service, mix.instances[i].vcpus);
  };
  for (std::size_t i = 0; i < mix.instances.size(); ++i) kinds[kind_of(i)].copies += 1;
  for (auto& [key, kind] : kinds) {
    const auto& [in, number, vcpus] = key;
    const Service& service = world.services[number];
    kind.at = running.size();
    running.push_back({.software = service.software,
                       .where = topology.core_threads(static_cast<int>(in)),
                       .load = service.load * load_at(service, day),
                       .floating = static_cast<double>(vcpus),
                       .copies = kind.copies,
                       .over = over});
  }
  const std::size_t batch = running.size();
  for (int in = 0; in < parts; ++in) {
    for (std::size_t i = 0; i < mix.batch_threads.size(); ++i) {
      running.push_back({.software = world.batch[i],
                         .where = topology.core_threads(in),
                         .load = std::nullopt,
                         .threads = mix.batch_threads[i] / parts,
                         .over = over});
    }
  }
  const std::vector<Figures> figures = steady_state(hardware, topology, running, kernel);

  std::vector<Figures> result(mix.instances.size() + mix.batch_threads.size());
  const auto add = [](Figures& sum, const Figures& one, double times) {
    sum.cores += times * one.cores;
    sum.instructions += times * one.instructions;
    sum.misses += times * one.misses;
  };
  for (std::size_t i = 0; i < mix.instances.size(); ++i) {
    const Kind& kind = kinds.at(kind_of(i));
    add(result[i], figures[kind.at], scale / kind.copies);
  }
  for (std::size_t at = batch; at < figures.size(); ++at)
    add(result[mix.instances.size() + (at - batch) % mix.batch_threads.size()], figures[at], scale);
  for (Figures& it : result) {
    if (it.instructions > 0) it.cpi = it.cores * hardware.clock_hz / it.instructions;
  }
  return result;
}

}  // namespace berth::policies::testing
