// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/ground_truth/machine.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace berth::policies::testing {

namespace {

constexpr int kMostRounds = 100;
constexpr double kSettled = 1e-5;  // relative change of a CPI
constexpr double kDamping = 0.5;
constexpr double kMostUtilisation = 0.95;
constexpr double kLeastShare_mib = 0.02;
constexpr double kLeastPrivateShare = 0.05;

// One that runs, in one last-level cache.
struct Place {
  const Software* software = nullptr;
  double mib = 0;                     // its share
  double misses_per_instruction = 0;  // with it
  double misses = 0;                  // a second
};

// One that runs, on one vCPU.
struct Thread {
  std::size_t owner = 0;
  std::size_t place = 0;  // index into places_
  int cpu = 0;
  int socket = 0;
  std::vector<std::size_t> siblings;  // threads on the core's other vCPUs
  double busy = 0;                    // share of the time
  double cpi = 1;
  double cpi_alone = 1;       // if the siblings were idle
  double private_misses = 0;  // a cycle, in half of the private cache
};

class Solver {
 public:
  Solver(const Hardware& hardware, const model::Topology& topology, const std::vector<Running>& running)
      : hardware_(hardware), running_(running) {
    std::map<int, const model::Cpu*> cpus;
    for (const model::Cpu& cpu : topology.cpus()) cpus[cpu.cpu] = &cpu;
    std::map<int, std::vector<std::size_t>> by_core;
    for (std::size_t owner = 0; owner < running.size(); ++owner) {
      std::map<int, std::size_t> place_of;  // by domain
      for (const int number : running[owner].where) {
        const model::Cpu& cpu = *cpus.at(number);
        const int domain = cpu.llc.value_or(0);
        const auto [place, fresh] = place_of.emplace(domain, places_.size());
        if (fresh) add_place(running[owner].software, domain);
        by_core[cpu.core].push_back(threads_.size());
        Thread thread;
        thread.owner = owner;
        thread.place = place->second;
        thread.cpu = number;
        thread.socket = cpu.socket;
        thread.cpi = running[owner].software.core_cpi;
        threads_.push_back(thread);
        latency_[cpu.socket] = hardware.memory_cycles;
      }
    }
    for (const auto& [core, of_core] : by_core) {
      for (const std::size_t one : of_core) {
        for (const std::size_t other : of_core) {
          if (threads_[one].cpu != threads_[other].cpu) threads_[one].siblings.push_back(other);
        }
      }
    }
    spread_endless();
  }

  std::vector<Figures> solve() {
    double change = 1;
    for (int round = 0; round < kMostRounds && change > kSettled; ++round) {
      for (Place& place : places_)
        place.misses_per_instruction = place.software->misses_per_instruction(place.mib);
      for (Thread& thread : threads_) look_alone(thread);
      change = 0;
      for (Thread& thread : threads_) {
        const double step = cpi_of(thread) - thread.cpi;
        change = std::max(change, std::abs(step) / thread.cpi);
        thread.cpi += kDamping * step;
      }
      for (Thread& thread : threads_) {
        const auto& load = running_[thread.owner].load;
        if (load) thread.busy = std::min(1.0, *load * thread.cpi / hardware_.clock_hz);
      }
      for (Place& place : places_) place.misses = 0;
      for (const Thread& thread : threads_) places_[thread.place].misses += misses_of(thread);
      for (const auto& [domain, places] : domains_) divide_cache(places);
      queue_for_memory();
    }
    return figures();
  }

 private:
  void add_place(const Software& software, int domain) {
    domains_[domain].push_back(places_.size());
    places_.push_back(
        {.software = &software, .mib = hardware_.llc_mib / 2, .misses_per_instruction = 0, .misses = 0});
  }

  // Those without end share the vCPUs that they may use evenly, as far as there are threads.
  void spread_endless() {
    std::map<int, double> wanted;  // threads, by vCPU
    const auto each = [&](auto take) {
      for (Thread& thread : threads_) {
        const Running& runs = running_[thread.owner];
        if (!runs.load) take(thread, runs.threads / static_cast<double>(runs.where.size()));
      }
    };
    each([&](const Thread& thread, double threads) { wanted[thread.cpu] += threads; });
    each([&](Thread& thread, double threads) { thread.busy = threads / std::max(1.0, wanted[thread.cpu]); });
  }

  const Software& software(const Thread& thread) const { return running_[thread.owner].software; }
  double instructions(const Thread& thread) const { return thread.busy * hardware_.clock_hz / thread.cpi; }
  double misses_of(const Thread& thread) const {
    return instructions(thread) * places_[thread.place].misses_per_instruction;
  }

  double stalls(const Thread& thread, double private_mib) const {
    const Software& it = software(thread);
    return (it.misses_per_instruction(private_mib) * hardware_.llc_cycles +
            places_[thread.place].misses_per_instruction * latency_.at(thread.socket)) /
           it.overlap;
  }
  void look_alone(Thread& thread) const {
    thread.cpi_alone = software(thread).core_cpi + stalls(thread, hardware_.private_cache_mib);
    thread.private_misses =
        software(thread).misses_per_instruction(hardware_.private_cache_mib / 2) / thread.cpi_alone;
  }
  double cpi_beside(const Thread& thread, const Thread& sibling) const {
    const double mine = std::min(1.0, 1 / (hardware_.issue_width * thread.cpi_alone));
    const double others = std::min(1.0, 1 / (hardware_.issue_width * sibling.cpi_alone));
    const double filled = 1 - (1 - mine) * (1 - others);
    const double part = thread.private_misses / (thread.private_misses + sibling.private_misses);
    return software(thread).core_cpi * (mine + others) / filled +
           stalls(thread, hardware_.private_cache_mib * std::max(kLeastPrivateShare, part));
  }
  double cpi_of(const Thread& thread) const {
    double idle = 1;
    double rate = 0;
    for (const std::size_t at : thread.siblings) {
      const Thread& sibling = threads_[at];
      const double busy = std::min(idle, sibling.busy);
      idle -= busy;
      if (busy > 0) rate += busy / cpi_beside(thread, sibling);
    }
    return 1 / (rate + idle / thread.cpi_alone);
  }

  void divide_cache(std::vector<std::size_t> places) {
    // Those whose working set is smaller than their share leave the rest to the others.
    std::sort(places.begin(), places.end(), [this](std::size_t a, std::size_t b) {
      return places_[a].software->working_set_mib * places_[b].misses <
             places_[b].software->working_set_mib * places_[a].misses;
    });
    double left = hardware_.llc_mib;
    double sum = 0;
    for (const std::size_t at : places) sum += places_[at].misses;
    for (const std::size_t at : places) {
      Place& place = places_[at];
      const double part = sum > 0 ? left * place.misses / sum : left;
      const double mib = std::clamp(part, kLeastShare_mib, place.software->working_set_mib);
      left = std::max(0.0, left - mib);
      sum -= place.misses;
      place.mib += kDamping * (mib - place.mib);
    }
  }

  void queue_for_memory() {
    std::map<int, double> bytes;
    for (const Thread& thread : threads_) bytes[thread.socket] += misses_of(thread) * hardware_.line_bytes;
    for (auto& [socket, cycles] : latency_) {
      const double rho = std::min(kMostUtilisation, bytes[socket] / hardware_.memory_bytes_s);
      const double queued = hardware_.memory_cycles * (1 + hardware_.queueing * rho / (1 - rho));
      cycles += kDamping * (queued - cycles);
    }
  }

  std::vector<Figures> figures() const {
    std::vector<Figures> result(running_.size());
    for (const Thread& thread : threads_) {
      Figures& it = result[thread.owner];
      it.cores += thread.busy;
      it.instructions += instructions(thread);
      it.misses += misses_of(thread);
    }
    for (Figures& it : result) {
      if (it.instructions > 0) it.cpi = it.cores * hardware_.clock_hz / it.instructions;
    }
    return result;
  }

  const Hardware& hardware_;
  const std::vector<Running>& running_;
  std::vector<Thread> threads_;
  std::vector<Place> places_;
  std::map<int, std::vector<std::size_t>> domains_;  // places, by domain
  std::map<int, double> latency_;                    // cycles of an access to memory, by socket
};

}  // namespace

double Software::misses_per_instruction(double mib) const {
  if (mib >= working_set_mib) return compulsory;
  return compulsory + reuse * (std::pow(mib, -alpha) - std::pow(working_set_mib, -alpha));
}

std::vector<Figures> steady_state(const Hardware& hardware, const model::Topology& topology,
                                  const std::vector<Running>& running) {
  return Solver(hardware, topology, running).solve();
}

}  // namespace berth::policies::testing
