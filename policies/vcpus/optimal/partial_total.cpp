// SPDX-License-Identifier: Apache-2.0
// A tenant that is still missing cannot lower what the others pay, apart from two ways. Under "overlap" it
// may take a vCPU from a pool of higher pressure than its own. So each vCPU that it may take counts as the
// lower of the two. Under "request" it may lower a mean. So a mean over some tenants counts as the lower of
// itself and the least pressure that may join them, and a mean over none as 0.
#include "policies/vcpus/optimal/partial_total.h"

#include "policies/vcpus/score.h"

#include <algorithm>

namespace berth::policies::optimal {

PartialTotal::PartialTotal(const Ground& ground)
    : ground_(ground),
      node_(ground.node()),
      pressure_(static_cast<std::size_t>(node_.size()), 0.0),
      region_load_(node_.regions().size(), 0.0),
      cores_(node_.core_count()),
      tenants_(ground.tenant_count()) {}

double PartialTotal::at_least(const Places& places, const std::vector<int>& owner, int vcpus,
                              double least_pressure, bool complete) {
  if (ground_.weighting() == Weighting::request) return request(places, owner, least_pressure, complete);
  fill_pressures(owner, vcpus, least_pressure, complete);
  return overlap(places);
}

int PartialTotal::spared(const std::vector<int>& owner) const {
  int count = 0;
  for (int core = 0; core < node_.core_count(); ++core) {
    const std::vector<int>& threads = node_.core_threads(core);
    if (std::any_of(threads.begin(), threads.end(), [&](int it) { return owner[it] >= 0; })) continue;
    count += static_cast<int>(
        std::count_if(threads.begin(), threads.end(), [&](int it) { return node_.usable(it); }));
  }
  return count;
}

void PartialTotal::fill_pressures(const std::vector<int>& owner, int vcpus, double least_pressure,
                                  bool complete) {
  const BestEffortDemand& demand = ground_.best_effort();
  const PoolState pool =
      pool_state(node_.usable_count() - vcpus, demand.avoid_siblings ? spared(owner) : 0, demand);
  for (int position = 0; position < node_.size(); ++position) {
    double& pressure = pressure_[position];
    pressure = 0;
    if (owner[position] >= 0) {
      pressure = ground_.tenant(owner[position]).pressure;
    } else if (!node_.usable(position)) {
      continue;
    } else if (complete || !demand.avoid_siblings) {
      pressure = pool.utilisation;
      if (!complete && ground_.givable(position)) pressure = std::min(pressure, least_pressure);
    }
  }
  if (!complete || !pool.spares_siblings) return;
  for (int core = 0; core < node_.core_count(); ++core) {
    const std::vector<int>& threads = node_.core_threads(core);
    if (std::none_of(threads.begin(), threads.end(), [&](int it) { return owner[it] >= 0; })) continue;
    for (const int thread : threads) {
      if (owner[thread] < 0) pressure_[thread] = 0;
    }
  }
}

double PartialTotal::overlap(const Places& places) {
  for (std::size_t region = 0; region < region_load_.size(); ++region) {
    region_load_[region] = 0;
    for (const int position : node_.region(static_cast<int>(region)).cpus) {
      region_load_[region] += pressure_[position];
    }
  }
  double total = 0;
  for (int tenant = 0; tenant < static_cast<int>(places.size()); ++tenant) {
    const Place& place = places[tenant];
    if (!place.taken()) continue;
    const model::InterferenceModel& model = ground_.tenant(tenant).model;
    double siblings = 0;
    double outside = region_load_[place.region];
    auto count = static_cast<int>(node_.region(place.region).cpus.size());
    cores_.clear();
    for (const int position : place.cpus) {
      const bool first = cores_.mark(node_.core(position));
      for (const int thread : node_.core_threads(node_.core(position))) {
        if (thread != position) siblings += pressure_[thread];
        if (!first) continue;
        outside -= pressure_[thread];
        --count;
      }
    }
    total += model.k1 * siblings;
    if (count > 0)
      total += static_cast<double>(place.cpus.size()) * model.k2 * std::max(0.0, outside) / count;
  }
  return total;
}

double PartialTotal::request(const Places& places, const std::vector<int>& owner, double least_pressure,
                             bool complete) {
  const auto mean = [&](const Requested& met) {
    if (complete) return met.mean();
    return met.vcpus > 0 ? std::min(met.mean(), least_pressure) : 0.0;
  };
  double total = 0;
  for (int tenant = 0; tenant < static_cast<int>(places.size()); ++tenant) {
    const Place& place = places[tenant];
    if (!place.taken()) continue;
    tenants_.clear();
    tenants_.mark(tenant);
    Requested mates;
    for (const int position : place.cpus) {
      for (const int thread : node_.core_threads(node_.core(position))) {
        if (owner[thread] >= 0 && tenants_.mark(owner[thread])) mates.add(ground_.tenant(owner[thread]));
      }
    }
    Requested others;
    for (const int position : node_.region(place.region).cpus) {
      if (owner[position] >= 0 && tenants_.mark(owner[position])) others.add(ground_.tenant(owner[position]));
    }
    const model::InterferenceModel& model = ground_.tenant(tenant).model;
    total += static_cast<double>(place.cpus.size()) * (model.k1 * mean(mates) + model.k2 * mean(others));
  }
  return total;
}

}  // namespace berth::policies::optimal
