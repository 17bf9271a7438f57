// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/learning/neighbours.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

namespace berth::policies {

namespace {

// The usable vCPUs of a set.
template <typename Places>
std::vector<int> usable_of(const Places& places, const model::CpuSet& where) {
  std::vector<int> cpus;
  for (const int cpu : where) {
    if (static_cast<std::size_t>(cpu) < places.size() && places[cpu].core >= 0) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

Neighbours::Neighbours(const model::Topology& topology, model::DomainKind shared_domain) {
  if (topology.cpus().empty()) return;
  const auto size = static_cast<std::size_t>(topology.cpus().back().cpu) + 1;
  places_.resize(size);
  load_.resize(size);
  misses_.resize(size);
  std::map<int, int> core_index;
  for (const model::Cpu& cpu : topology.cpus()) {
    if (!topology.usable().contains(cpu.cpu)) continue;
    const auto [entry, fresh] = core_index.emplace(cpu.core, static_cast<int>(cores_.size()));
    if (fresh) cores_.emplace_back();
    cores_[entry->second].push_back(cpu.cpu);
    places_[cpu.cpu].core = entry->second;
  }
  for (const model::Domain& domain : topology.domains(shared_domain)) {
    for (const int cpu : domain.cpus) places_[cpu].domain = static_cast<int>(domains_.size());
    domains_.push_back(domain.cpus.to_vector());
  }
}

void Neighbours::add(const model::CpuSet& where, const Use& use) {
  const auto cpus = usable_of(places_, where);
  if (cpus.empty()) return;
  const auto count = static_cast<double>(cpus.size());
  misses_known_ = misses_known_ && use.misses_per_s.has_value();
  for (const int cpu : cpus) {
    load_[cpu] += use.cores / count;
    misses_[cpu] += use.misses_per_s.value_or(0) / count;
  }
}

struct Neighbours::Without {
  const Neighbours& all;
  std::vector<int> cpus;  // of the instance
  model::CpuSet where;
  Use own;

  double share(double amount) const { return amount / static_cast<double>(cpus.size()); }
  double load(int cpu) const {
    const double own_load = where.contains(cpu) ? share(own.cores) : 0;
    return std::clamp(all.load_[cpu] - own_load, 0.0, 1.0);
  }
  double load(const std::vector<int>& of) const {
    double sum = 0;
    for (const int cpu : of) sum += load(cpu);
    return sum;
  }
  double misses(const std::vector<int>& of) const {
    double sum = 0;
    for (const int cpu : of) {
      const double own_misses = where.contains(cpu) ? share(own.misses_per_s.value_or(0)) : 0;
      sum += std::max(0.0, all.misses_[cpu] - own_misses);
    }
    return sum;
  }
  const std::vector<int>& core(int cpu) const { return all.cores_[all.places_[cpu].core]; }
  const std::vector<int>& domain(int cpu) const { return all.domains_[all.places_[cpu].domain]; }

  double on_siblings() const {
    double sum = 0;
    for (const int cpu : cpus) sum += load(core(cpu)) - load(cpu);
    return share(sum);
  }

  // Mean over the vCPUs of its domains outside its cores.
  double outside_cores() const {
    std::set<int> own_cores;
    std::set<int> own_domains;
    for (const int cpu : cpus) {
      own_cores.insert(all.places_[cpu].core);
      own_domains.insert(all.places_[cpu].domain);
    }
    double sum = 0;
    int count = 0;
    for (const int domain : own_domains) {
      for (const int cpu : all.domains_[domain]) {
        if (own_cores.count(all.places_[cpu].core) > 0) continue;
        sum += load(cpu);
        ++count;
      }
    }
    return count > 0 ? sum / count : 0;
  }

  // The same for an instance on one vCPU after the other.
  double outside_core_in_turn() const {
    std::map<int, double> load_of_domain;
    double sum = 0;
    for (const int cpu : cpus) {
      const auto [entry, fresh] = load_of_domain.try_emplace(all.places_[cpu].domain);
      if (fresh) entry->second = load(domain(cpu));
      const std::size_t outside = domain(cpu).size() - core(cpu).size();
      if (outside > 0) sum += (entry->second - load(core(cpu))) / static_cast<double>(outside);
    }
    return share(sum);
  }

  double misses_in_domain() const {
    std::map<int, double> misses_of_domain;
    double sum = 0;
    for (const int cpu : cpus) {
      const auto [entry, fresh] = misses_of_domain.try_emplace(all.places_[cpu].domain);
      if (fresh) entry->second = misses(domain(cpu)) / static_cast<double>(domain(cpu).size());
      sum += entry->second;
    }
    return share(sum);
  }
};

std::optional<Surroundings> Neighbours::around(const model::CpuSet& where, int vcpus, const Use& own) const {
  const Without others{.all = *this, .cpus = usable_of(places_, where), .where = where, .own = own};
  if (others.cpus.empty()) return std::nullopt;
  Surroundings seen;
  seen.sc = std::max(0.0, others.on_siblings());
  const bool in_place = others.cpus.size() <= static_cast<std::size_t>(std::max(1, vcpus));
  seen.ss = std::max(0.0, in_place ? others.outside_cores() : others.outside_core_in_turn());
  if (misses_known_) seen.llc = others.misses_in_domain();
  return seen;
}

}  // namespace berth::policies
