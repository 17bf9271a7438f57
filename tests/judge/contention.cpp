// SPDX-License-Identifier: Apache-2.0
#include "tests/judge/contention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace berth::judge {

namespace {

constexpr double kLeastShare_mib = 0.02;
constexpr double kMostUtilisation = 0.95;
constexpr double kNoThreads = 1e-3;

}  // namespace

Contention::Contention(const Hardware& hardware, std::vector<CpuPlace> places, std::vector<Software> software,
                       Time memory)
    : hardware_(hardware), memory_(memory), places_(std::move(places)), software_(std::move(software)) {
  int domains = 0;
  int sockets = 0;
  for (const CpuPlace& place : places_) {
    domains = std::max(domains, place.domain + 1);
    sockets = std::max(sockets, place.socket + 1);
  }
  socket_of_.resize(domains);
  for (const CpuPlace& place : places_) socket_of_[place.domain] = place.socket;
  sockets_.resize(sockets);
  shares_.resize(domains * software_.size());
  for (const Software& it : software_) {
    whole_misses_.push_back(it.misses_per_instruction(hardware_.private_cache_mib));
    half_misses_.push_back(it.misses_per_instruction(hardware_.private_cache_mib / 2));
    const int group = static_cast<int>(alone_.size());
    const double mib = std::min(hardware_.llc_mib, it.working_set_mib);
    const double misses = it.misses_per_instruction(mib);
    alone_.push_back(it.core_cpi +
                     (whole_misses_[group] * hardware_.llc_cycles + misses * hardware_.memory_cycles) /
                         it.overlap);
    for (int domain = 0; domain < domains; ++domain)
      at(domain, group) = {.threads = 0, .mib = mib, .misses = misses};
  }
}

double Contention::memory_cycles(int socket) const {
  const double rho = sockets_[socket];
  return hardware_.memory_cycles * (1 + hardware_.queueing * rho / (1 - rho));
}

double Contention::cpi(int group, double core_cpi, double private_misses, double misses, int socket) const {
  return core_cpi +
         (private_misses * hardware_.llc_cycles + misses * memory_cycles(socket)) / software_[group].overlap;
}

double Contention::speed(int group, int cpu, int sibling) const {
  const CpuPlace& place = places_[cpu];
  const double core_cpi = software_[group].core_cpi;
  if (sibling < 0)
    return alone_[group] /
           cpi(group, core_cpi, whole_misses_[group], at(place.domain, group).misses, place.socket);
  // The share of the core's issue slots that each would fill alone.
  const auto demand = [&](int it) {
    return 1 / (hardware_.issue_width *
                cpi(it, software_[it].core_cpi, half_misses_[it], at(place.domain, it).misses, place.socket));
  };
  const double own = demand(group);
  const double other = demand(sibling);
  const double slower = (own + other) / (1 - (1 - own) * (1 - other));
  return alone_[group] /
         cpi(group, core_cpi * slower, half_misses_[group], at(place.domain, group).misses, place.socket);
}

void Contention::look(const Kernel& kernel, Time elapsed) {
  const double fresh = 1 - std::exp(-static_cast<double>(elapsed) / static_cast<double>(memory_));
  for (Share& share : shares_) share.threads *= 1 - fresh;
  for (int cpu = 0; cpu < static_cast<int>(places_.size()); ++cpu) {
    if (const int group = kernel.running(cpu); group >= 0)
      at(places_[cpu].domain, group).threads += fresh * places_[cpu].capacity;
  }
  std::vector<double> bytes_s(sockets_.size());
  for (int domain = 0; domain < static_cast<int>(socket_of_.size()); ++domain) {
    const auto misses_s = [&](int group) {
      const Share& share = at(domain, group);
      return share.threads * hardware_.clock_hz * share.misses /
             cpi(group, software_[group].core_cpi, whole_misses_[group], share.misses, socket_of_[domain]);
    };
    double sum = 0;
    for (int group = 0; group < static_cast<int>(software_.size()); ++group) sum += misses_s(group);
    bytes_s[socket_of_[domain]] += sum * hardware_.line_bytes;
    std::vector<double> wanted(software_.size());
    for (int group = 0; group < static_cast<int>(software_.size()); ++group) {
      const double part = sum > 0 ? misses_s(group) / sum : 0;
      wanted[group] = std::clamp(hardware_.llc_mib * part, kLeastShare_mib, software_[group].working_set_mib);
    }
    // Those whose working set fits leave the rest to the others.
    double free_mib = hardware_.llc_mib;
    for (const double mib : wanted) free_mib -= mib;
    for (int group = 0; group < static_cast<int>(software_.size()); ++group) {
      Share& share = at(domain, group);
      if (share.threads < kNoThreads) continue;
      const double room = std::max(0.0, free_mib);
      const double mib = std::min(wanted[group] + room, software_[group].working_set_mib);
      share.mib += fresh * (mib - share.mib);
      share.misses = software_[group].misses_per_instruction(std::min(share.mib, hardware_.llc_mib));
    }
  }
  for (std::size_t socket = 0; socket < sockets_.size(); ++socket)
    sockets_[socket] = std::min(kMostUtilisation, bytes_s[socket] / hardware_.memory_bytes_s);
}

}  // namespace berth::judge
