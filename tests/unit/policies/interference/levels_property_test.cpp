// SPDX-License-Identifier: Apache-2.0
// Services of all three levels on random nodes, against a restatement of docs/decisions/levels.md with sets
// and loops.
#include "policies/after.h"
#include "policies/decide.h"
#include "policies/level.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/interference/random_node.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using model::CpuSet;
using model::Isolation;
using model::Workload;

testing::RandomCase random_levels(std::uint64_t seed) {
  auto drawn = testing::random_case(seed);
  testing::Draws draws(seed + 7);
  const auto level = [&] {
    return draws.chance(0.6) ? Isolation::shared : draws.chance(0.5) ? Isolation::cores : Isolation::vcpus;
  };
  drawn.settings.interference.isolation = level();
  drawn.settings.interference.search = draws.chance(0.8) ? Search::window : Search::optimal;
  drawn.settings.interference.budget_s = 0.001;
  drawn.snapshot.pending.clear();
  for (Workload& workload : drawn.snapshot.workloads) {
    if (draws.chance(0.5)) workload.isolation = level();
  }
  return drawn;
}

struct Domain {
  int id = 0;
  CpuSet online;
};

std::vector<Domain> domains_of(const testing::RandomCase& drawn) {
  const model::Topology& topology = drawn.snapshot.topology;
  const bool llc = drawn.settings.interference.shared_domain == model::DomainKind::llc && topology.has_llc();
  std::map<int, CpuSet> online;
  for (const model::Cpu& cpu : topology.cpus()) {
    if (cpu.online) online[llc ? cpu.llc.value_or(-1) : topology.socket_domain(cpu)].insert(cpu.cpu);
  }
  std::vector<Domain> domains;
  for (const auto& domain : llc ? topology.domains(model::DomainKind::llc) : topology.sockets())
    domains.push_back({.id = domain.id, .online = online[domain.id]});
  return domains;
}

// The host after the plan's owners, as a home is chosen on it.
class Naive {
 public:
  Naive(const testing::RandomCase& drawn, const model::InterferenceFindings& findings)
      : drawn_(drawn), domains_(domains_of(drawn)) {
    for (const auto& [id, instance] : findings.instances) {
      owned_ |= instance.cpus;
      for (const int cpu : instance.cpus) {
        pressure_[cpu] = instance.pressure;
        owner_[cpu] = id;
      }
    }
    double best_effort = 0;
    for (const Workload& workload : drawn.snapshot.workloads) {
      if (workload.workload_class == model::WorkloadClass::best_effort)
        best_effort += workload.usage.cpu().mean().value_or(0);
    }
    const CpuSet unowned = testing::given_out(drawn.snapshot.topology, drawn.settings.interference) - owned_;
    for (const int cpu : unowned)
      pressure_[cpu] = std::min(1.0, best_effort / static_cast<double>(unowned.size()));
    open_ = unowned - drawn.settings.interference.reserved_cpus;
  }

  const std::vector<Domain>& domains() const { return domains_; }
  const CpuSet& open() const { return open_; }

  model::InterferenceModel model_of(const Workload& workload) const {
    const auto profile = drawn_.snapshot.services.find(workload.service);
    const bool given = profile != drawn_.snapshot.services.end() && profile->second.model;
    return given ? *profile->second.model : drawn_.settings.interference.default_model;
  }
  double siblings(const Domain& domain) const {
    double sum = 0;
    for (const int a : domain.online) {
      for (const int b : domain.online) sum += a != b && core(a) == core(b) ? 1 : 0;
    }
    return sum / size(domain);
  }
  double lost(const Workload& workload, const Domain& domain) const {
    const auto model = model_of(workload);
    return model.k1 * siblings(domain) + model.k2;
  }
  CpuSet cpus(const Domain& domain, const Workload& workload) const {
    CpuSet cpus = domain.online & open_;
    if (workload.allowed_cpus) cpus &= *workload.allowed_cpus;
    return cpus;
  }
  // What services leave to this one, of `part` of each vCPU.
  double room(const Domain& domain, const Workload& workload, double part) const {
    double left = part * static_cast<double>((domain.online & open_).size());
    for (const auto& [id, cores] : settled_) left -= here(domain, id, cores);
    const auto may = static_cast<double>(cpus(domain, workload).size());
    return std::max(0.0, std::min(left, part * may));
  }
  bool fits(const Domain& domain, const Workload& workload, double use) const {
    return !cpus(domain, workload).empty() && use <= room(domain, workload, 0.9) + 1e-6;
  }
  double rise(const Domain& domain, const Workload& workload, double use) const {
    double busy = 0;
    for (const int cpu : domain.online) {
      const auto known = pressure_.find(cpu);
      busy += known == pressure_.end() ? 0 : known->second;
    }
    double others = 0;
    for (const auto& [id, cores] : settled_) {
      busy += here(domain, id, cores);
      others += here(domain, id, cores) * lost(*find_workload(drawn_.snapshot, id), domain);
    }
    for (const auto& [cpu, id] : owner_) {
      const Workload* owner = find_workload(drawn_.snapshot, id);
      if (domain.online.contains(cpu)) others += lost(*owner, domain);
    }
    return use * (lost(workload, domain) * std::min(1.0, busy / size(domain)) + others / size(domain));
  }
  void settle(const Workload& workload, const CpuSet& home, double use) {
    homes_[workload.id] = home;
    settled_[workload.id] = use;
  }

 private:
  static double size(const Domain& domain) { return static_cast<double>(domain.online.size()); }
  int core(int cpu) const { return drawn_.snapshot.topology.find(cpu)->core; }
  // Its use in the domain.
  double here(const Domain& domain, const std::string& id, double use) const {
    const Workload& workload = *find_workload(drawn_.snapshot, id);
    double all = 0;
    for (const Domain& it : domains_) {
      if (homes_.at(id).contains(it.id)) all += static_cast<double>(cpus(it, workload).size());
    }
    if (all <= 0 || !homes_.at(id).contains(domain.id)) return 0;
    return use * static_cast<double>(cpus(domain, workload).size()) / all;
  }

  const testing::RandomCase& drawn_;
  std::vector<Domain> domains_;
  CpuSet owned_;
  CpuSet open_;
  std::map<int, double> pressure_;
  std::map<int, std::string> owner_;
  std::map<std::string, double> settled_;
  std::map<std::string, CpuSet> homes_;
};

std::vector<const Workload*> services_of(const testing::RandomCase& drawn) {
  std::vector<const Workload*> services;
  for (const Workload& workload : drawn.snapshot.workloads) {
    if (workload.workload_class == model::WorkloadClass::latency_sensitive) services.push_back(&workload);
  }
  return services;
}

}  // namespace

RC_GTEST_PROP(LevelsProperty, EachServiceHasWhatItsLevelSays, ()) {
  const auto drawn = random_levels(*testing::any_seed());
  const InterferenceSettings& settings = drawn.settings.interference;
  const auto plan = decide(drawn.snapshot, drawn.settings, {"interference"});
  const auto& findings = *plan.findings.interference;
  const CpuSet given = testing::given_out(drawn.snapshot.topology, settings);
  CpuSet owned;
  for (const auto& [id, instance] : findings.instances) {
    RC_ASSERT(!owned.intersects(instance.cpus));
    owned |= instance.cpus;
  }
  for (const Workload* service : services_of(drawn)) {
    const bool shared = isolation_of(*service, settings) == Isolation::shared;
    const bool unplaceable = without_own_vcpus(plan).contains(service->id) && !shared;
    RC_ASSERT(findings.shared.contains(service->id) == shared);
    RC_ASSERT(findings.instances.contains(service->id) == (!shared && !unplaceable));
    const auto placed = findings.instances.find(service->id);
    if (placed == findings.instances.end() || isolation_of(*service, settings) != Isolation::cores) continue;
    std::map<int, CpuSet> cores;
    for (const int cpu : placed->second.cpus) {
      const CpuSet threads = drawn.snapshot.topology.core_threads(cpu);
      RC_ASSERT(threads.is_subset_of(placed->second.cpus));
      cores[drawn.snapshot.topology.find(cpu)->core] = threads;
    }
    const auto vcpus = static_cast<int>(placed->second.cpus.size());
    RC_ASSERT(vcpus >= *service->vcpus);
    for (const auto& [core, threads] : cores)
      RC_ASSERT(vcpus - static_cast<int>(threads.size()) < *service->vcpus);
  }
  RC_ASSERT(findings.best_effort.cpus.is_subset_of(given - owned));
  const auto unowned = static_cast<int>((given - owned).size());
  const int least = std::min(unowned, std::max(1, settings.be_min_cpus));
  RC_ASSERT(settings.be_avoid_siblings || static_cast<int>(findings.best_effort.cpus.size()) >= least);
}

RC_GTEST_PROP(LevelsProperty, AHomeIsTheDomainWhereTheScoreRisesLeast, ()) {
  const auto drawn = random_levels(*testing::any_seed());
  const auto plan = decide(drawn.snapshot, drawn.settings, {"interference"});
  const auto& findings = *plan.findings.interference;
  Naive naive(drawn, findings);
  std::vector<const Workload*> services;
  for (const Workload* service : services_of(drawn)) {
    if (findings.shared.contains(service->id) && !service->usage.empty()) services.push_back(service);
  }
  const auto use_of = [](const Workload* service) { return service->usage.cpu().mean().value_or(0); };
  std::stable_sort(services.begin(), services.end(),
                   [&](const auto* a, const auto* b) { return use_of(a) > use_of(b); });
  for (const Workload* service : services) {
    const auto& found = findings.shared.at(service->id);
    const double use = use_of(service);
    double least = HUGE_VAL;
    double chosen = HUGE_VAL;
    for (const Domain& domain : naive.domains()) {
      if (!naive.fits(domain, *service, use)) continue;
      const double rise = naive.rise(domain, *service, use);
      least = std::min(least, rise);
      if (found.home == CpuSet{domain.id}) chosen = rise;
    }
    if (least < HUGE_VAL) RC_ASSERT(chosen <= least + 1e-6);
    CpuSet place;
    double room = 0;
    for (const Domain& domain : naive.domains()) {
      if (!found.home.contains(domain.id)) continue;
      place |= naive.cpus(domain, *service);
      room += naive.room(domain, *service, 1);
    }
    naive.settle(*service, found.home, use);
    const CpuSet usable = drawn.snapshot.topology.usable();
    const CpuSet may = service->allowed_cpus ? usable & *service->allowed_cpus : usable;
    const double more = service->cpus.empty() ? 1.02 : 1.10;
    const bool pinned = place != may && use <= more * room + 1e-6;
    RC_ASSERT(found.cpus == (pinned ? place : CpuSet()));
  }
}

RC_GTEST_PROP(LevelsProperty, TheNextPlanKeepsEveryHome, ()) {
  auto drawn = random_levels(*testing::any_seed());
  const auto first = decide(drawn.snapshot, drawn.settings, {"interference"});
  const auto standing =
      after(model::standing_in(drawn.snapshot), drawn.snapshot, first, assumed(first), drawn.settings);
  model::take_off(drawn.snapshot);
  model::put_on(standing, drawn.snapshot);
  drawn.snapshot.time += 1;
  const auto second = decide(drawn.snapshot, drawn.settings, {"interference"});
  // The optimal search may move an owner to the last vCPUs of a home.
  const auto& owners = second.findings.interference->instances;
  RC_PRE(std::equal(owners.begin(), owners.end(), first.findings.interference->instances.begin(),
                    first.findings.interference->instances.end(), [](const auto& is, const auto& was) {
                      return is.first == was.first && is.second.cpus == was.second.cpus;
                    }));
  for (const auto& [id, was] : first.findings.interference->shared) {
    const auto& is = second.findings.interference->shared.at(id);
    RC_ASSERT(was.home.is_subset_of(is.home));
  }
}

}  // namespace berth::policies
