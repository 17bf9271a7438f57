// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/score.h"

#include "policies/vcpus/marks.h"

namespace berth::policies {

namespace {

void evaluate_requests(const Occupancy& occupancy, std::vector<TenantScore>& scores) {
  const Node& node = occupancy.node();
  std::vector<std::vector<int>> present(node.regions().size());
  for (int region = 0; region <= node.whole(); ++region) present[region] = occupancy.tenants_in(region);

  Marks on_core(static_cast<int>(scores.size()));
  for (int i = 0; i < static_cast<int>(scores.size()); ++i) {
    if (!occupancy.placed(i)) continue;
    on_core.clear();
    on_core.mark(i);
    Requested sc;
    Requested ss;
    for (const int position : occupancy.tenant(i).cpus) {
      for (const int thread : node.core_threads(node.core(position))) {
        const int other = occupancy.owner(thread);
        if (other >= 0 && on_core.mark(other)) sc.add(occupancy.tenant(other));
      }
    }
    for (const int other : present[occupancy.tenant(i).region]) {
      if (on_core.mark(other)) ss.add(occupancy.tenant(other));
    }
    scores[i].cpu_sc = sc.mean();
    scores[i].cpu_ss = ss.mean();
  }
}

void evaluate_overlap(const Occupancy& occupancy, const BestEffortDemand& demand,
                      std::vector<TenantScore>& scores) {
  const Node& node = occupancy.node();
  const PoolState pool = pool_state(occupancy.unowned_count(), occupancy.spared_count(), demand);
  std::vector<double> pressure(static_cast<std::size_t>(node.size()));
  for (int position = 0; position < node.size(); ++position) {
    const bool pooled = pool.spares_siblings ? occupancy.spared(position) : occupancy.unowned(position);
    pressure[position] = pooled ? pool.utilisation : occupancy.owner_pressure(position);
  }
  Marks own_cores(node.core_count());
  for (int i = 0; i < static_cast<int>(scores.size()); ++i) {
    if (!occupancy.placed(i)) continue;
    const Tenant& tenant = occupancy.tenant(i);
    own_cores.clear();
    double siblings = 0;
    for (const int position : tenant.cpus) {
      own_cores.mark(node.core(position));
      for (const int thread : node.core_threads(node.core(position))) {
        if (thread != position) siblings += pressure[thread];
      }
    }
    double outside = 0;
    int outside_count = 0;
    for (const int position : node.region(tenant.region).cpus) {
      if (own_cores.marked(node.core(position))) continue;
      outside += pressure[position];
      ++outside_count;
    }
    scores[i].cpu_sc = siblings / tenant.vcpus;
    scores[i].cpu_ss = outside_count > 0 ? outside / outside_count : 0.0;
  }
}

}  // namespace

NodeScore evaluate(const Occupancy& occupancy, Weighting weighting, const BestEffortDemand& demand) {
  const Node& node = occupancy.node();
  NodeScore result;
  result.tenants.resize(occupancy.tenants().size());
  if (weighting == Weighting::request) {
    evaluate_requests(occupancy, result.tenants);
  } else {
    evaluate_overlap(occupancy, demand, result.tenants);
  }
  result.domains.assign(static_cast<std::size_t>(node.domain_count()), 0.0);
  for (int i = 0; i < static_cast<int>(result.tenants.size()); ++i) {
    if (!occupancy.placed(i)) continue;
    const Tenant& tenant = occupancy.tenant(i);
    TenantScore& score = result.tenants[i];
    score.score = tenant.model.k1 * score.cpu_sc + tenant.model.k2 * score.cpu_ss;
    result.node += tenant.vcpus * score.score;
    for (const int position : tenant.cpus) result.domains[node.domain(position)] += score.score;
  }
  result.node /= node.size();
  for (int domain = 0; domain < node.domain_count(); ++domain) {
    result.domains[domain] /= static_cast<double>(node.region(domain).cpus.size());
  }
  return result;
}

}  // namespace berth::policies
