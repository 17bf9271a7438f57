// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/occupancy.h"

#include <algorithm>
#include <utility>

namespace berth::policies {

PoolState pool_state(int complement, int spared, const BestEffortDemand& demand) {
  PoolState pool;
  pool.spares_siblings = demand.avoid_siblings && spared >= demand.min_cpus;
  pool.size = pool.spares_siblings ? spared : complement;
  pool.utilisation = pool.size > 0 ? std::min(1.0, demand.use_cores / pool.size) : 0.0;
  return pool;
}

Occupancy::Occupancy(const Node& node, std::vector<Tenant> tenants)
    : node_(&node),
      tenants_(std::move(tenants)),
      owner_(static_cast<std::size_t>(node.size()), -1),
      owned_in_core_(static_cast<std::size_t>(node.core_count()), 0),
      unowned_count_(node.usable_count()),
      spared_count_(node.usable_count()) {}

void Occupancy::place(int tenant, int region, std::vector<int> cpus) {
  for (const int position : cpus) {
    owner_[position] = tenant;
    --unowned_count_;
    const int core = node_->core(position);
    if (owned_in_core_[core]++ > 0) continue;
    // The core's first owned thread: none of its threads is spared any more.
    for (const int thread : node_->core_threads(core)) spared_count_ -= node_->usable(thread) ? 1 : 0;
  }
  tenants_[tenant].region = region;
  tenants_[tenant].cpus = std::move(cpus);
  ++placed_count_;
}

void Occupancy::add(Tenant placed) {
  const int region = placed.region;
  std::vector<int> cpus = std::exchange(placed.cpus, {});
  tenants_.push_back(std::move(placed));
  place(static_cast<int>(tenants_.size()) - 1, region, std::move(cpus));
}

std::vector<int> Occupancy::tenants_in(int region) const {
  std::vector<int> found;
  for (const int position : node_->region(region).cpus) {
    if (owner_[position] >= 0) found.push_back(owner_[position]);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

int Occupancy::share(int tenant, int region) const {
  const Tenant& it = tenants_[tenant];
  if (it.region == region) return it.vcpus;
  return static_cast<int>(std::count_if(it.cpus.begin(), it.cpus.end(),
                                        [&](int position) { return node_->holds(region, position); }));
}

}  // namespace berth::policies
