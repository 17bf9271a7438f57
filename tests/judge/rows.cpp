// SPDX-License-Identifier: Apache-2.0
#include "tests/judge/rows.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace berth::judge {

namespace {

constexpr int kBatchGroups = 2;
constexpr Time kWarmUp = 5 * kSecond;
constexpr int kMostAsked = 4;

// From arithmetic to streams, as in tests/unit/policies/interference/ground_truth.
Software draw_software(std::mt19937_64& random, bool batch) {
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  Software software;
  software.core_cpi = between(0.4, 0.9);
  software.reuse = between(0.001, batch ? 0.02 : 0.008);
  software.working_set_mib = between(1, batch ? 64 : 16);
  software.overlap = between(1.5, 4);
  return software;
}

struct Running {
  Simulation simulation;
  Contention contention;

  Running(const Host& host, const Rules& rules, const std::vector<Group>& groups,
          const std::vector<ServiceLoad>& services, const std::vector<BatchLoad>& batch, std::uint64_t seed)
      : simulation(host.places, rules, groups, services, batch, seed,
                   [this](int group, int cpu, int sibling) { return contention.speed(group, cpu, sibling); }),
        contention({}, host.places, software_of(host), rules.cache_memory) {
    simulation.each(kMillisecond, [this] {
      contention.look(simulation.kernel(), kMillisecond);
      simulation.kernel().change_speeds();
    });
  }

  static std::vector<Software> software_of(const Host& host) {
    std::vector<Software> all;
    for (const ServiceOnHost& service : host.services) all.push_back(service.software);
    all.insert(all.end(), host.batch_software.begin(), host.batch_software.end());
    return all;
  }
};

double batch_work_s(const Host& host, const Kernel& kernel) {
  double sum = 0;
  for (int group = 0; group < host.groups(); ++group) {
    if (host.is_batch(group)) sum += kernel.used(group).work_s;
  }
  return sum;
}

}  // namespace

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, const Row& row) {
    rows.push_back(row);
    rows.back().name = name;
  };
  for (const double use : {0.2, 0.45, 0.7}) {
    Row row;
    row.use = use;
    add("8 vCPUs, use " + std::to_string(static_cast<int>(100 * use)) + " %", row);
    row.cores = 8;
    row.sockets = 2;
    add("32 vCPUs, use " + std::to_string(static_cast<int>(100 * use)) + " %", row);
  }
  Row row;
  row.asked = 0.85;
  add("8 vCPUs, 85 % asked for", row);
  row = {};
  row.work_s = 0.2e-3;
  add("8 vCPUs, 0.2 ms of work", row);
  row = {};
  row.burst = 4;
  add("8 vCPUs, bursts of four", row);
  row = {};
  row.threads = 1;
  row.cores = 8;
  add("8 vCPUs without siblings", row);
  row = {};
  row.threads_of_service = 1;
  add("8 vCPUs, one thread a vCPU", row);
  row.threads_of_service = 4;
  add("8 vCPUs, four threads a vCPU", row);
  row = {};
  row.batch_run_s = 2;
  row.batch_pause_s = 1;
  add("8 vCPUs, batch comes and goes", row);
  row = {};
  row.sockets = 2;
  row.domains = 2;
  row.cores = 4;
  add("32 vCPUs, four caches", row);
  row = {};
  row.threads = 1;
  row.cores = 16;
  row.slow_cores = 8;
  add("16 vCPUs, half of them slow", row);
  row.use = 0.2;
  add("16 vCPUs, half of them slow, use 20 %", row);
  return rows;
}

double Host::capacity() const {
  double sum = 0;
  for (const CpuPlace& place : places) sum += place.capacity;
  return sum;
}

Host draw_host(const Row& row, std::uint64_t seed) {
  std::mt19937_64 random(seed * 104729 + 5);
  Host host;
  host.places = shape(row.sockets, row.domains, row.cores, row.threads);
  for (CpuPlace& place : host.places) {
    if (place.core % row.cores >= row.cores - row.slow_cores) place.capacity = kSlowCapacity;
  }
  int left = static_cast<int>(std::lround(row.asked * host.cpus()));
  while (left > 0) {
    const int vcpus = std::min(left, std::uniform_int_distribution<int>(1, kMostAsked)(random));
    left -= vcpus;
    ServiceOnHost service;
    service.vcpus = vcpus;
    service.software = draw_software(random, false);
    service.load.group = static_cast<int>(host.services.size());
    service.load.cores = row.use * vcpus;
    service.load.work_s = row.work_s;
    service.load.threads = row.threads_of_service * vcpus;
    service.load.work = ServiceLoad::Work::lognormal;
    service.load.burst = row.burst;
    host.services.push_back(service);
  }
  for (int i = 0; i < kBatchGroups; ++i) {
    host.batch.push_back({.group = static_cast<int>(host.services.size()) + i,
                          .threads = host.cpus() / kBatchGroups,
                          .run_s = row.batch_run_s,
                          .pause_s = row.batch_pause_s});
    host.batch_software.push_back(draw_software(random, true));
  }
  return host;
}

Alone alone_on(const Host& host, const Rules& rules, Time length, std::uint64_t seed) {
  Alone alone;
  const auto groups = same_priority(host);
  for (std::size_t i = 0; i < host.services.size(); ++i) {
    // The same requests as beside the others.
    std::vector<ServiceLoad> services;
    for (const ServiceOnHost& service : host.services) services.push_back(service.load);
    for (std::size_t other = 0; other < services.size(); ++other) {
      if (other != i) services[other].cores = 1e-9;
    }
    Running run(host, rules, groups, services, {}, seed);
    run.simulation.run(length, kWarmUp);
    alone.p99_s.push_back(quantile(run.simulation.answers(i).times_s, 0.99));
  }
  Running run(host, rules, groups, {}, host.batch, seed);
  run.simulation.run(length);
  alone.batch_work_s = batch_work_s(host, run.simulation.kernel()) / (static_cast<double>(length) * 1e-9);
  return alone;
}

Figures judge(const Host& host, const Way& way, const Alone& alone, const Rules& rules, Time length,
              std::uint64_t seed) {
  std::vector<ServiceLoad> services;
  for (const ServiceOnHost& service : host.services) services.push_back(service.load);
  Running run(host, rules, way.begin(host), services, host.batch, seed);
  Kernel& kernel = run.simulation.kernel();
  std::vector<double> before(static_cast<std::size_t>(host.groups()));
  if (way.period > 0) {
    const auto change = way.make(host);
    run.simulation.each(way.period, [&, change] {
      std::vector<double> used_s;
      for (int group = 0; group < host.groups(); ++group) {
        used_s.push_back(kernel.used(group).cpu_s - before[group]);
        before[group] = kernel.used(group).cpu_s;
      }
      change(kernel, used_s);
    });
  }
  run.simulation.run(kWarmUp, kWarmUp);
  const double work_before_s = batch_work_s(host, kernel);
  Figures figures;
  double fine_cores = 0;
  int windows = 0;
  int violations = 0;
  std::vector<std::size_t> seen(services.size());
  for (Time done = 0; done + kWindow <= length; done += kWindow) {
    run.simulation.run(kWindow);
    ++windows;
    for (std::size_t i = 0; i < services.size(); ++i) {
      const auto& times_s = run.simulation.answers(i).times_s;
      const std::vector<double> window(times_s.begin() + static_cast<std::ptrdiff_t>(seen[i]), times_s.end());
      seen[i] = times_s.size();
      // A service that answers nothing is in violation, too.
      const bool fine = !window.empty() && quantile(window, 0.99) <= kTolerated * alone.p99_s[i];
      violations += fine ? 0 : 1;
      if (fine) fine_cores += services[i].cores;
    }
  }
  figures.violations = violations / static_cast<double>(windows * services.size());
  std::vector<double> ratios;
  for (std::size_t i = 0; i < services.size(); ++i) {
    ratios.push_back(quantile(run.simulation.answers(i).times_s, 0.99) / alone.p99_s[i]);
  }
  figures.p99_ratio = quantile(ratios, 0.5);
  figures.worst_ratio = quantile(ratios, 1);
  const double seconds = static_cast<double>(windows * kWindow) * 1e-9;
  figures.batch = (batch_work_s(host, kernel) - work_before_s) / seconds / alone.batch_work_s;
  figures.emu = fine_cores / windows / host.capacity() + figures.batch;
  return figures;
}

}  // namespace berth::judge
