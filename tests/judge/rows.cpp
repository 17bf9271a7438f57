// SPDX-License-Identifier: Apache-2.0
#include "tests/judge/rows.h"

#include "tests/judge/berth.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace berth::judge {

namespace {

constexpr int kBatchGroups = 2;
constexpr Time kWarmUp = 20 * kSecond;  // berth places, measures the usual waits, and lends
constexpr double kLessonRun_s = 5;      // the mean stretch and pause of a batch thread while berth learns
constexpr Time kLesson = 400 * kSecond;
constexpr int kMostAsked = 4;
constexpr double kSilent = 1e-9;  // cores of a service without requests

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

std::vector<Software> software_of(const Host& host) {
  std::vector<Software> all;
  for (const ServiceOnHost& service : host.services) all.push_back(service.software);
  all.insert(all.end(), host.batch_software.begin(), host.batch_software.end());
  return all;
}

// Reads what an agent reads.
class Reader {
 public:
  Reader(const Host& host, const Running& run, Time period, std::uint64_t seed)
      : run_(run),
        period_s_(static_cast<double>(period) * 1e-9),
        random_(seed * 6007 + 11),
        before_(static_cast<std::size_t>(host.groups())) {}

  std::vector<Reading> read() {
    std::vector<Reading> readings;
    for (int group = 0; group < static_cast<int>(before_.size()); ++group) {
      const Used& now = run_.simulation.kernel().used(group);
      Used& before = before_[group];
      Reading& it = readings.emplace_back();
      const double cpu_s = now.cpu_s - before.cpu_s;
      it.cores = cpu_s / period_s_ * noise();
      it.delay_us = model::delay_quantile_us(before.delay, now.delay, 0.99);
      if (it.delay_us) *it.delay_us *= noise();
      if (now.work_s > before.work_s)
        it.cpi = run_.contention.cpi_alone(group) * cpu_s / (now.work_s - before.work_s) * noise();
      before = now;
    }
    return readings;
  }

 private:
  double noise() { return std::max(0.0, 1 + kNoise * std::normal_distribution<double>()(random_)); }

  const Running& run_;
  double period_s_;
  std::mt19937_64 random_;
  std::vector<Used> before_;
};

double batch_work_s(const Host& host, const Kernel& kernel) {
  double sum = 0;
  for (int group = 0; group < host.groups(); ++group) {
    if (host.is_batch(group)) sum += kernel.used(group).work_s;
  }
  return sum;
}

// The batch's priority is the same to all where no service may run on its vCPUs.
std::vector<Group> comparable(const Host& host, std::vector<Group> groups) {
  CpuMask services;
  for (std::size_t i = 0; i < host.services.size(); ++i) services |= groups[i].mask;
  for (std::size_t i = host.services.size(); i < groups.size(); ++i) {
    if ((groups[i].mask & services).any()) continue;
    groups[i].weight = 1024;
    groups[i].idle = false;
  }
  return groups;
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

std::vector<ServiceLoad> Host::loads() const {
  std::vector<ServiceLoad> loads;
  for (const ServiceOnHost& service : services) loads.push_back(service.load);
  return loads;
}

Host draw_host(const Row& row, std::uint64_t seed) {
  std::mt19937_64 random(seed * 104729 + 5);
  Host host;
  host.seed = seed;
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

Running::Running(const Host& host, const Rules& rules, const std::vector<Group>& groups,
                 const std::vector<ServiceLoad>& services, const std::vector<BatchLoad>& batch,
                 std::uint64_t seed)
    : simulation(host.places, rules, groups, services, batch, seed,
                 [this](int group, int cpu, int sibling) { return contention.speed(group, cpu, sibling); }),
      contention(host.hardware, host.places, software_of(host), rules.cache_memory) {
  simulation.each(kMillisecond, [this] {
    contention.look(simulation.kernel(), kMillisecond);
    simulation.kernel().change_speeds();
  });
}

std::unique_ptr<Running> Running::alone(const Host& host, const Rules& rules,
                                        const std::vector<Group>& groups, std::size_t service,
                                        std::uint64_t seed) {
  auto services = host.loads();
  for (std::size_t other = 0; other < services.size(); ++other) {
    if (other != service) services[other].cores = kSilent;
  }
  return std::make_unique<Running>(host, rules, groups, services, std::vector<BatchLoad>(), seed);
}

Alone alone_on(const Host& host, const Rules& rules, Time length, std::uint64_t seed) {
  Alone alone;
  const auto groups = same_priority(host);
  for (std::size_t i = 0; i < host.services.size(); ++i) {
    const auto run = Running::alone(host, rules, groups, i, seed);
    run->simulation.run(kWarmUp + length, kWarmUp);
    const auto& times_s = run->simulation.answers(i).times_s;
    alone.services.push_back({.p50_s = quantile(times_s, 0.5),
                              .p99_s = quantile(times_s, 0.99),
                              .p999_s = quantile(times_s, 0.999)});
  }
  Running run(host, rules, groups, {}, host.batch, seed);
  run.simulation.run(length);
  alone.batch_work_s = batch_work_s(host, run.simulation.kernel()) / (static_cast<double>(length) * 1e-9);
  return alone;
}

Figures judge(const Host& host, const Way& way, const Alone& alone, const Rules& rules, Time length,
              std::uint64_t seed) {
  const auto services = host.loads();
  Running run(host, rules, way.begin(host), services, host.batch, seed);
  Kernel& kernel = run.simulation.kernel();
  Reader reader(host, run, way.period, seed);
  if (way.period > 0)
    run.simulation.each(way.period, [&, change = way.make(host)] { change(kernel, reader.read()); });
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
      const bool fine = !window.empty() && quantile(window, 0.99) <= kTolerated * alone.services[i].p99_s;
      violations += fine ? 0 : 1;
      if (fine) fine_cores += services[i].cores;
    }
  }
  figures.violations = violations / static_cast<double>(windows * services.size());
  const auto ratios = [&](double q, double Alone::Times::*time_s) {
    std::vector<double> found;
    for (std::size_t i = 0; i < services.size(); ++i)
      found.push_back(quantile(run.simulation.answers(i).times_s, q) / (alone.services[i].*time_s));
    return found;
  };
  figures.p50_ratio = quantile(ratios(0.5, &Alone::Times::p50_s), 0.5);
  figures.p99_ratio = quantile(ratios(0.99, &Alone::Times::p99_s), 0.5);
  figures.p999_ratio = quantile(ratios(0.999, &Alone::Times::p999_s), 0.5);
  figures.worst_ratio = quantile(ratios(0.99, &Alone::Times::p99_s), 1);
  const double seconds = static_cast<double>(windows * kWindow) * 1e-9;
  figures.batch = (batch_work_s(host, kernel) - work_before_s) / seconds / alone.batch_work_s;
  figures.emu = fine_cores / windows / host.capacity() + figures.batch;
  return figures;
}

std::map<std::string, model::ServiceProfile> learn_on(const Host& host, const Rules& rules, Time length,
                                                      std::uint64_t seed) {
  const auto services = host.loads();
  auto batch = host.batch;
  for (BatchLoad& load : batch) load.run_s = load.pause_s = kLessonRun_s;
  Running run(host, rules, same_priority(host), services, batch, seed + 1000);
  Reader reader(host, run, kSecond, seed + 1000);
  Berth berth(host, {}, {}, true);
  run.simulation.each(kSecond, [&] { berth.decide(run.simulation.kernel(), reader.read()); });
  run.simulation.run(length);
  return berth.learned();
}

std::vector<Figures> judge_all(Host host, const std::vector<Way>& ways, const Rules& rules, Time length,
                               std::uint64_t seed) {
  const Alone alone = alone_on(host, rules, length, seed);
  if (std::any_of(ways.begin(), ways.end(), [](const Way& way) { return way.learned; }))
    host.learned = learn_on(host, rules, kLesson, seed);
  std::vector<std::pair<std::vector<Group>, Figures>> known;
  std::vector<Figures> all;
  for (const Way& way : ways) {
    const auto groups = comparable(host, way.begin(host));
    const auto same =
        std::find_if(known.begin(), known.end(), [&](const auto& it) { return it.first == groups; });
    if (way.period == 0 && same != known.end()) {
      all.push_back(same->second);
      continue;
    }
    all.push_back(judge(host, way, alone, rules, length, seed));
    if (way.period == 0) known.emplace_back(groups, all.back());
  }
  return all;
}

void judge_rows(const std::vector<Row>& rows, const std::vector<Way>& ways, const Rules& rules, Time length,
                std::uint64_t first_seed, std::uint64_t seeds, unsigned jobs,
                const std::function<void(std::size_t row, const std::vector<std::vector<Figures>>&)>& done) {
  std::vector<std::vector<std::vector<Figures>>> found(rows.size(), std::vector<std::vector<Figures>>(seeds));
  std::atomic<std::size_t> next = 0;
  std::mutex finishing;
  std::size_t finished = 0;  // rows
  const auto is_whole = [](const auto& by_seed) {
    return std::none_of(by_seed.begin(), by_seed.end(), [](const auto& it) { return it.empty(); });
  };
  const auto work = [&] {
    for (std::size_t host = next++; host < rows.size() * seeds; host = next++) {
      const std::size_t row = host / seeds;
      const std::uint64_t index = host % seeds;
      const std::uint64_t seed = first_seed + index;
      auto figures = judge_all(draw_host(rows[row], seed), ways, rules, length, seed);
      const std::lock_guard lock(finishing);
      found[row][index] = std::move(figures);
      for (; finished < rows.size() && is_whole(found[finished]); ++finished) done(finished, found[finished]);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace berth::judge
