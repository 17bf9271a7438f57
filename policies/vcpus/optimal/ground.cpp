// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/optimal/ground.h"

#include "policies/vcpus/score.h"

#include <algorithm>
#include <utility>

namespace berth::policies::optimal {

Ground::Ground(const PlacementProblem& problem) : problem_(&problem) {
  const Node& node = problem.node;
  givable_.resize(static_cast<std::size_t>(node.size()), 0);
  for (int position = 0; position < node.size(); ++position) {
    const bool reserved = problem.settings.reserved_cpus.contains(node.cpu(position));
    givable_[position] = node.usable(position) && !reserved ? 1 : 0;
  }
  limits_.emplace_back();
  limit_sets_.push_back(nullptr);
  for (int i = 0; i < static_cast<int>(problem.requests.size()); ++i) {
    add_limit(problem.requests[i].allowed);
    add_regions(tenant(i).vcpus);
    spanning_ = spanning_ || (!regions(i).empty() && regions(i).front() >= node.domain_count());
    spanning_ = spanning_ || tenant(i).region >= node.domain_count();
    add_kind(i);
  }
}

void Ground::add_regions(int vcpus) {
  const auto found = std::find(sizes_.begin(), sizes_.end(), vcpus);
  regions_of_.push_back(static_cast<int>(found - sizes_.begin()));
  if (found != sizes_.end()) return;
  sizes_.push_back(vcpus);
  auto found_regions = node().regions_for(vcpus, problem_->settings.allow_cross_socket);
  region_lists_.push_back(vcpus > 0 && found_regions ? std::move(*found_regions) : std::vector<int>());
}

void Ground::add_limit(const std::optional<model::CpuSet>& allowed) {
  if (!allowed) {
    limit_of_.push_back(0);
    return;
  }
  for (std::size_t i = 1; i < limits_.size(); ++i) {
    if (*limit_sets_[i] != *allowed) continue;
    limit_of_.push_back(static_cast<int>(i));
    return;
  }
  limit_of_.push_back(static_cast<int>(limits_.size()));
  limit_sets_.push_back(&*allowed);
  std::vector<char>& limit = limits_.emplace_back();
  for (int position = 0; position < node().size(); ++position) {
    limit.push_back(allowed->contains(node().cpu(position)) ? 1 : 0);
  }
}

void Ground::add_kind(int index) {
  const Tenant& it = tenant(index);
  for (const int other : kinds_) {
    const Tenant& that = tenant(other);
    if (it.vcpus != that.vcpus || it.pressure != that.pressure || it.model != that.model) continue;
    if (limit_of_[index] != limit_of_[other]) continue;
    kind_.push_back(other);
    return;
  }
  kinds_.push_back(index);
  kind_.push_back(index);
}

int Ground::region_at(int tenant, int position) const {
  const std::vector<int>& may_lie_in = regions(tenant);
  if (may_lie_in.empty()) return -1;
  if (may_lie_in.front() == node().whole()) return node().whole();
  const int domain = node().domain(position);
  // Where domains are sockets, both numbers are the same.
  return may_lie_in.front() < node().domain_count() ? domain : node().socket(position);
}

Places Ground::standing() const {
  Places places;
  for (const Tenant& tenant : problem_->standing.tenants()) {
    places.push_back({.region = tenant.region, .cpus = tenant.cpus});
  }
  return places;
}

Occupancy Ground::occupancy(const Places& places) const {
  std::vector<Tenant> tenants = problem_->standing.tenants();
  for (Tenant& tenant : tenants) {
    tenant.region = -1;
    tenant.cpus.clear();
  }
  Occupancy occupancy(node(), std::move(tenants));
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].taken()) occupancy.place(static_cast<int>(i), places[i].region, places[i].cpus);
  }
  return occupancy;
}

double Ground::score(const Places& places) const {
  return evaluate(occupancy(places), weighting(), best_effort()).node;
}

}  // namespace berth::policies::optimal
