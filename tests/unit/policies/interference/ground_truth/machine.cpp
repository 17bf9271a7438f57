// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/policies/interference/ground_truth/machine.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
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
  double copies = 1;
  double mib = 0;                     // the share of each copy
  double misses_per_instruction = 0;  // with it
  double misses = 0;                  // a second, of all copies
};

// One that runs, on one vCPU.
struct Thread {
  std::size_t owner = 0;
  std::size_t place = 0;  // index into places_
  std::size_t core = 0;   // index into cores_
  std::size_t turn = 0;   // index into turns_
  int cpu = 0;
  int socket = 0;
  std::vector<std::size_t> siblings;  // threads on the core's other vCPUs
  double most = 1;                    // share of the time, if it always runs; all copies together
  double busy = 0;                    // share of the time
  double cpi = 1;
  double cpi_alone = 1;       // if the siblings were idle
  double private_misses = 0;  // a cycle, in half of the private cache
};

class Solver {
 public:
  Solver(const Hardware& hardware, const model::Topology& topology, const std::vector<Running>& running,
         const Kernel& kernel)
      : hardware_(hardware), running_(running), kernel_(kernel) {
    std::map<int, const model::Cpu*> cpus;
    for (const model::Cpu& cpu : topology.cpus()) cpus[cpu.cpu] = &cpu;
    std::map<int, std::size_t> core_of;  // index into cores_
    std::map<int, std::size_t> turn_of;  // index into turns_
    for (std::size_t owner = 0; owner < running.size(); ++owner) {
      std::map<int, std::size_t> place_of;  // by domain
      for (const int number : running[owner].where) {
        const model::Cpu& cpu = *cpus.at(number);
        const int domain = cpu.llc.value_or(0);
        const auto [place, fresh] = place_of.emplace(domain, places_.size());
        if (fresh) add_place(running[owner], domain);
        const std::size_t core = core_of.emplace(cpu.core, core_of.size()).first->second;
        if (core == cores_.size()) cores_.push_back({.vcpus = topology.core_threads(number).size()});
        cores_[core].threads.push_back(threads_.size());
        Thread thread;
        thread.owner = owner;
        thread.place = place->second;
        thread.core = core;
        thread.turn = turn_of.emplace(number, turn_of.size()).first->second;
        thread.cpu = number;
        thread.socket = cpu.socket;
        thread.most = most(running[owner]);
        thread.cpi = running[owner].software.core_cpi;
        threads_.push_back(thread);
        latency_[cpu.socket] = hardware.memory_cycles;
      }
    }
    turns_.resize(turn_of.size());
    for (const Core& core : cores_) {
      for (const std::size_t one : core.threads) {
        for (const std::size_t other : core.threads) {
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
      serve();
      spread_endless();
      if (kernel_.searched_vcpus > 0) seek_idle_cores();
      for (Place& place : places_) place.misses = 0;
      for (const Thread& thread : threads_) places_[thread.place].misses += misses_of(thread);
      for (const auto& [domain, places] : domains_) divide_cache(places);
      queue_for_memory();
    }
    return figures();
  }

 private:
  struct Core {
    std::size_t vcpus = 1;
    std::vector<std::size_t> threads{};
    double meeting = 1;  // how often threads meet on it, as a share of how often they would without regard
  };
  // The use of one vCPU.
  struct Turn {
    double served = 0;  // busy for those with a load
    double wanted = 0;  // threads without end
  };

  void add_place(const Running& runs, int domain) {
    domains_[domain].push_back(places_.size());
    places_.push_back({.software = &runs.software,
                       .copies = runs.copies,
                       .mib = hardware_.llc_mib / 2,
                       .misses_per_instruction = 0,
                       .misses = 0});
  }

  static double most(const Running& runs) {
    const double over = runs.over > 0 ? runs.over : static_cast<double>(runs.where.size());
    if (!runs.load) return runs.threads / over;
    return runs.floating > 0 ? runs.copies * runs.floating / over : runs.copies;
  }

  // Those with a load. If they want more than a vCPU, each has its share of it.
  void serve() {
    for (Turn& turn : turns_) turn.served = 0;
    const auto each = [&](auto take) {
      for (Thread& thread : threads_) {
        if (running_[thread.owner].load) take(thread, turns_[thread.turn]);
      }
    };
    each([&](Thread& thread, Turn& turn) {
      thread.busy =
          thread.most * std::min(1.0, *running_[thread.owner].load * thread.cpi / hardware_.clock_hz);
      turn.served += thread.busy;
    });
    each([&](Thread& thread, const Turn& turn) { thread.busy /= std::max(1.0, turn.served); });
  }

  // Threads without end share the rest of their vCPUs evenly. A thread gets one vCPU at most.
  void spread_endless() {
    for (Turn& turn : turns_) turn.wanted = 0;
    const auto each = [&](auto take) {
      for (Thread& thread : threads_) {
        if (!running_[thread.owner].load) take(thread, turns_[thread.turn]);
      }
    };
    each([&](const Thread& thread, Turn& turn) { turn.wanted += thread.most; });
    each([&](Thread& thread, const Turn& turn) {
      const double left = 1 - std::min(1.0, turn.served);
      thread.busy = left > 0 ? thread.most / std::max(1.0, turn.wanted / left) : 0;
    });
  }

  // So many vCPUs have a number of busy threads whose mean and variance are known. Two share a core only if
  // they are more than the cores. (By the normal distribution.)
  void seek_idle_cores() {
    for (Core& core : cores_) {
      double mean = 0;
      double variance = 0;
      for (const std::size_t at : core.threads) {
        const Thread& thread = threads_[at];
        mean += thread.busy;
        if (running_[thread.owner].load) variance += thread.busy * (1 - thread.busy / thread.most);
      }
      const double sample = kernel_.searched_vcpus / static_cast<double>(core.vcpus);
      const double utilisation = mean / static_cast<double>(core.vcpus);
      mean *= sample;
      const double deviation = std::sqrt(std::max(1e-12, variance * sample));
      const double above = mean - kernel_.searched_vcpus / 2;  // the cores
      const double z = above / deviation;
      const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
      const double doubled = deviation * density + above * std::erfc(-z / std::numbers::sqrt2) / 2;
      core.meeting = mean > 0 ? std::clamp(2 * doubled / mean / utilisation, 0.0, 1.0) : 1;
    }
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
  // Share of the sibling's time in which it runs beside the thread, of the time in which the thread runs.
  double meeting(const Thread& thread, const Thread& sibling) const {
    const Running& runs = running_[thread.owner];
    const double threads = runs.copies * runs.floating;
    // A thread that floats is not its own sibling.
    const double others = thread.owner == sibling.owner && threads > 0 ? std::max(0.0, 1 - 1 / threads) : 1;
    return others * cores_[thread.core].meeting;
  }
  double cpi_of(const Thread& thread) const {
    double idle = 1;
    double rate = 0;
    for (const std::size_t at : thread.siblings) {
      const Thread& sibling = threads_[at];
      const double busy = std::min(idle, sibling.busy * meeting(thread, sibling));
      idle -= busy;
      if (busy > 0) rate += busy / cpi_beside(thread, sibling);
    }
    return 1 / (rate + idle / thread.cpi_alone);
  }

  void divide_cache(std::vector<std::size_t> places) {
    // Those whose working set is smaller than their share leave the rest to the others.
    std::sort(places.begin(), places.end(), [this](std::size_t a, std::size_t b) {
      return places_[a].software->working_set_mib * places_[a].copies * places_[b].misses <
             places_[b].software->working_set_mib * places_[b].copies * places_[a].misses;
    });
    double left = hardware_.llc_mib;
    double sum = 0;
    for (const std::size_t at : places) sum += places_[at].misses;
    for (const std::size_t at : places) {
      Place& place = places_[at];
      const double part = (sum > 0 ? left * place.misses / sum : left) / place.copies;
      const double mib = std::clamp(part, kLeastShare_mib, place.software->working_set_mib);
      left = std::max(0.0, left - mib * place.copies);
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
  const Kernel kernel_;
  std::vector<Core> cores_;
  std::vector<Turn> turns_;  // by vCPU
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
                                  const std::vector<Running>& running, const Kernel& kernel) {
  return Solver(hardware, topology, running, kernel).solve();
}

}  // namespace berth::policies::testing
