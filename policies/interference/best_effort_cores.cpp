// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/best_effort_cores.h"

#include "policies/usage.h"
#include "policies/vcpus/pool.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace berth::policies {

namespace {

// What best-effort work could have in a domain.
struct Offer {
  int region = -1;
  std::vector<model::CpuSet> cores;  // in the order of giving
  model::CpuSet always;              // besides

  std::vector<int> threads() const {
    std::vector<int> counts;
    for (const model::CpuSet& core : cores) counts.push_back(static_cast<int>(core.size()));
    return counts;
  }
  model::CpuSet first(int count) const {
    model::CpuSet cpus = always;
    for (int i = 0; i < count; ++i) cpus |= cores[i];
    return cpus;
  }
};

Offer offer_of(const Node& node, int region, const model::CpuSet& pool, const model::CpuSet& reserved) {
  Offer offer{.region = region, .cores = {}, .always = {}};
  std::map<int, model::CpuSet> by_core;
  for (const int position : node.region(region).cpus) {
    const int cpu = node.cpu(position);
    if (!pool.contains(cpu)) continue;
    if (reserved.contains(cpu)) {
      offer.always.insert(cpu);
    } else {
      by_core[node.core(position)].insert(cpu);
    }
  }
  for (auto core = by_core.rbegin(); core != by_core.rend(); ++core)
    offer.cores.push_back(std::move(core->second));
  const auto kind = [&](const model::CpuSet& cpus) { return node.kind(node.position(cpus.first())); };
  std::stable_sort(offer.cores.begin(), offer.cores.end(),
                   [&](const auto& a, const auto& b) { return kind(a) > kind(b); });
  return offer;
}

// The whole cores that services with this use leave.
int left_by(const std::vector<int>& threads, double services_cores) {
  double left = std::accumulate(threads.begin(), threads.end(), 0.0) - kServicesShare * services_cores;
  int cores = 0;
  while (cores < static_cast<int>(threads.size()) && threads[cores] <= left + kUseRounding)
    left -= threads[cores++];
  return cores;
}

// A time in the future comes from a clock that was set back.
bool is_less_than_ago(double time, double seconds, double now) {
  return now - time >= 0 && now - time < seconds;
}

}  // namespace

int next_cores(const std::vector<int>& threads, double services_cores,
               const std::optional<model::BestEffortCores>& before, double now, bool may_grow) {
  const int wanted = left_by(threads, services_cores);
  if (!before || wanted <= before->cores) return wanted;
  const bool grows = may_grow && !is_less_than_ago(before->fell_at, kCalm_s, now) &&
                     left_by(threads, kToGrow * services_cores) > before->cores;
  return before->cores + (grows ? 1 : 0);
}

std::map<int, model::BestEffortCores> best_effort_cores(const Occupancy& occupancy,
                                                        const BestEffortDemand& demand,
                                                        const std::map<int, double>& services_cores,
                                                        const model::CpuSet& reserved,
                                                        const std::map<int, model::BestEffortCores>& before,
                                                        double now, bool may_grow) {
  const Node& node = occupancy.node();
  const model::CpuSet pool = best_effort_pool(occupancy, demand);
  std::map<int, model::BestEffortCores> domains;
  std::vector<Offer> offers;
  model::CpuSet left = pool;
  for (int region = 0; region < node.domain_count(); ++region) {
    const int id = node.region(region).id;
    const auto services = services_cores.find(id);
    const auto known = before.find(id);
    const auto was = known == before.end() ? std::nullopt : std::optional(known->second);
    if (services == services_cores.end() && !was) continue;
    Offer offer = offer_of(node, region, pool, reserved);
    const auto all = static_cast<int>(offer.cores.size());
    if (services == services_cores.end() && was->cores >= all) continue;
    int cores = 0;
    if (services != services_cores.end()) {
      cores = std::min(next_cores(offer.threads(), services->second, was, now, may_grow), all);
    } else {
      cores = is_less_than_ago(was->fell_at, kLeft_s, now) ? was->cores : all;
    }
    model::BestEffortCores& domain = domains[id];
    domain.cores = cores;
    domain.cpus = offer.first(cores);
    for (const model::CpuSet& core : offer.cores) left -= core;
    left |= domain.cpus;
    offers.push_back(std::move(offer));
  }
  for (const Offer& offer : offers) {
    const int id = node.region(offer.region).id;
    model::BestEffortCores& domain = domains[id];
    while (static_cast<int>(left.size()) < demand.min_cpus && domain.cores < std::ssize(offer.cores)) {
      left |= offer.cores[domain.cores++];
      domain.cpus = offer.first(domain.cores);
    }
    const auto was = before.find(id);
    const bool known = was != before.end();
    const int had = known ? was->second.cores : static_cast<int>(offer.cores.size());
    domain.fell_at = domain.cores < had ? now : known ? was->second.fell_at : 0;
  }
  return domains;
}

}  // namespace berth::policies
