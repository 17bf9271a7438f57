// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/moment.h"

#include "tests/judge/rows.h"

#include <algorithm>
#include <limits>

namespace berth::fleet {

namespace {

using judge::Time;
using policies::testing::World;

constexpr Time kWarmUp = judge::kSecond;
constexpr Time kLength = 5 * judge::kSecond;
constexpr double kSeconds = static_cast<double>(kLength) * 1e-9;
constexpr double kStretch_s = 0.1;  // that a thread of a job computes, on average
constexpr double kBusiest = 0.99;   // of its time
// cpu.weight of 100 for a core that a pod asks for, and of 1 for all pods together that ask for none. 100 is
// 1024 of the kernel's.
constexpr double kCoreWeight = 1024;
constexpr double kBestEffortWeight = 10.24;

std::vector<judge::CpuPlace> places_of(const model::Topology& topology) {
  std::vector<judge::CpuPlace> places;
  for (const model::Cpu& cpu : topology.cpus())
    places.push_back({.core = cpu.core, .domain = cpu.llc.value(), .socket = cpu.socket});
  return places;
}

judge::CpuMask mask_of(const model::CpuSet& cpus) {
  judge::CpuMask mask;
  for (const int cpu : cpus) mask.set(static_cast<std::size_t>(cpu));
  return mask;
}

// Jobs of one software are in one group.
judge::Host host_of(const World& world, const Moment& moment) {
  const judge::Row usual;
  judge::Host host;
  host.hardware = world.hardware;
  host.places = places_of(world.topology);
  for (const Moment::Service& it : moment.services) {
    judge::ServiceOnHost service;
    service.vcpus = it.vcpus;
    service.software = world.services[it.software].software;
    service.load.group = static_cast<int>(host.services.size());
    service.load.cores = it.cores;
    service.load.work_s = usual.work_s;
    service.load.threads = usual.threads_of_service * it.vcpus;
    service.load.work = judge::ServiceLoad::Work::lognormal;
    host.services.push_back(service);
  }
  for (const Moment::Job& it : moment.jobs) {
    const double busy = std::min(kBusiest, it.use_cores / it.cores);
    host.batch.push_back({.group = static_cast<int>(moment.services.size() + it.software),
                          .threads = it.cores,
                          .run_s = kStretch_s,
                          .pause_s = kStretch_s * (1 - busy) / busy});
  }
  host.batch_software = world.batch;
  return host;
}

std::vector<judge::Group> groups_of(const World& world, const Moment& moment, Priority priority) {
  const auto where = [&](const model::CpuSet& cpus) {
    return mask_of(cpus.empty() ? world.topology.usable() : cpus);
  };
  std::vector<judge::Group> groups;
  for (const Moment::Service& it : moment.services) {
    judge::Group group;
    group.weight = kCoreWeight * it.vcpus;
    group.mask = where(it.cpus);
    group.quota_cores = it.vcpus;
    groups.push_back(group);
  }
  std::vector<double> asked(world.batch.size());
  double all_asked = 0;
  for (const Moment::Job& it : moment.jobs) {
    asked[it.software] += it.cores;
    all_asked += it.cores;
  }
  for (const double cores : asked) {
    judge::Group group;
    group.weight = priority == Priority::request ? kCoreWeight * cores
                                                 : kBestEffortWeight * cores / std::max(1.0, all_asked);
    group.idle = priority == Priority::idle;
    group.mask = where(moment.pool);
    groups.push_back(group);
  }
  return groups;
}

// Lets the host run. Services before jobs.
Shared run(judge::Running& host, std::size_t services, std::size_t groups) {
  host.simulation.run(kWarmUp, kWarmUp);
  const judge::Kernel& kernel = host.simulation.kernel();
  std::vector<judge::Used> before;
  for (std::size_t i = 0; i < groups; ++i) before.push_back(kernel.used(static_cast<int>(i)));
  host.simulation.run(kLength);
  Shared found;
  for (std::size_t i = 0; i < groups; ++i) {
    const double cpu_s = kernel.used(static_cast<int>(i)).cpu_s - before[i].cpu_s;
    const double work_s = kernel.used(static_cast<int>(i)).work_s - before[i].work_s;
    if (i >= services) {
      found.job_work += work_s / kSeconds;
      continue;
    }
    const auto& times_s = host.simulation.answers(i).times_s;
    found.services.push_back(
        {.p99_s = times_s.empty() ? std::numeric_limits<double>::infinity() : judge::quantile(times_s, 0.99),
         .cpu_for_work = work_s > 0 ? cpu_s / work_s : 1});
  }
  return found;
}

}  // namespace

std::vector<Served> served_alone(const World& world, const Moment& moment, std::uint64_t seed) {
  Moment anywhere = moment;
  for (Moment::Service& it : anywhere.services) it.cpus = {};
  const judge::Host host = host_of(world, anywhere);
  const auto groups = groups_of(world, anywhere, Priority::request);
  std::vector<Served> found;
  for (std::size_t i = 0; i < moment.services.size(); ++i) {
    const auto alone = judge::Running::alone(host, {}, groups, i, seed);
    found.push_back(run(*alone, host.services.size(), groups.size()).services[i]);
  }
  return found;
}

Shared shared(const World& world, const Moment& moment, Priority priority, std::uint64_t seed) {
  const judge::Host host = host_of(world, moment);
  const auto groups = groups_of(world, moment, priority);
  judge::Running all(host, {}, groups, host.loads(), host.batch, seed);
  return run(all, host.services.size(), groups.size());
}

}  // namespace berth::fleet
