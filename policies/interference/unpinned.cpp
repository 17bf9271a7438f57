// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/unpinned.h"

#include "policies/vcpus/score.h"

#include <algorithm>

namespace berth::policies {

namespace {

// The mean number of neighbours of a usable vCPU: unpinned, an instance may be on any of them.
struct Company {
  double siblings = 0;         // other threads of its core
  double has_sibling = 0;      // share with at least one
  double has_domain = 0;       // share whose domain has other cores
  double has_domain_only = 0;  // share whose domain has other cores, and whose core has no other thread
};

Company company_on(const Node& node) {
  Company sum;
  for (int position = 0; position < node.size(); ++position) {
    if (!node.usable(position)) continue;
    // A usable vCPU always has a domain: domains are made of usable vCPUs.
    const std::size_t threads = node.core_threads(node.core(position)).size();
    const bool shares_domain = node.region(node.domain(position)).cpus.size() > threads;
    sum.siblings += static_cast<double>(threads - 1);
    sum.has_sibling += threads > 1 ? 1 : 0;
    sum.has_domain += shares_domain ? 1 : 0;
    sum.has_domain_only += shares_domain && threads == 1 ? 1 : 0;
  }
  const double count = std::max(1, node.usable_count());
  return {sum.siblings / count, sum.has_sibling / count, sum.has_domain / count, sum.has_domain_only / count};
}

}  // namespace

std::optional<double> score_unpinned(const Occupancy& occupancy, Weighting weighting,
                                     const BestEffortDemand& demand) {
  if (occupancy.placed_count() == 0) return std::nullopt;
  const Node& node = occupancy.node();
  const double vcpus = node.size();
  const Company company = company_on(node);
  Requested all;
  for (const Tenant& tenant : occupancy.tenants()) {
    if (tenant.region >= 0) all.add(tenant);
  }
  // "overlap": every vCPU has the host's mean pressure, the same for every instance.
  const double even = std::clamp((all.pressure + std::min(demand.use_cores, vcpus)) / vcpus, 0.0, 1.0);

  double sum = 0;
  for (const Tenant& tenant : occupancy.tenants()) {
    if (tenant.region < 0) continue;
    double cpu_sc = company.siblings * even;
    double cpu_ss = company.has_domain * even;
    if (weighting == Weighting::request) {
      // Every other instance has a vCPU on every core. One that counts on the core does not count in the
      // domain again.
      Requested others = all;
      others.remove(tenant);
      cpu_sc = company.has_sibling * others.mean();
      cpu_ss = company.has_domain_only * others.mean();
    }
    sum += tenant.vcpus * (tenant.model.k1 * cpu_sc + tenant.model.k2 * cpu_ss);
  }
  return sum / vcpus;
}

}  // namespace berth::policies
