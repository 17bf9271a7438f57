// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/optimal/layout.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace berth::policies::optimal {

Layout::Layout(const Ground& ground)
    : ground_(ground),
      node_(ground.node()),
      places_(static_cast<std::size_t>(ground.tenant_count())),
      owner_(static_cast<std::size_t>(node_.size()), -1),
      slot_(static_cast<std::size_t>(node_.size()), 0),
      core_marks_(node_.core_count()),
      tenant_marks_(ground.tenant_count()) {}

void Layout::set(const Places& places) {
  places_ = places;
  std::fill(owner_.begin(), owner_.end(), -1);
  for (int tenant = 0; tenant < static_cast<int>(places_.size()); ++tenant) {
    for (int i = 0; i < static_cast<int>(places_[tenant].cpus.size()); ++i) {
      owner_[places_[tenant].cpus[i]] = tenant;
      slot_[places_[tenant].cpus[i]] = i;
    }
  }
  rebuild();
}

void Layout::touch(int core) {
  if (!core_marks_.mark(core)) return;
  cores_.push_back(core);
  for (const int thread : node_.core_threads(core)) {
    if (owner_[thread] >= 0 && tenant_marks_.mark(owner_[thread])) tenants_.push_back(owner_[thread]);
  }
}

void Layout::swap_contents(int a, int b) {
  std::swap(owner_[a], owner_[b]);
  std::swap(slot_[a], slot_[b]);
  if (owner_[a] >= 0) places_[owner_[a]].cpus[slot_[a]] = a;
  if (owner_[b] >= 0) places_[owner_[b]].cpus[slot_[b]] = b;
}

void Layout::exchange(const std::vector<Exchange>& pairs) {
  cores_.clear();
  tenants_.clear();
  core_marks_.clear();
  tenant_marks_.clear();
  for (const Exchange& pair : pairs) {
    touch(node_.core(pair.a));
    touch(node_.core(pair.b));
  }
  lift(cores_, tenants_);
  for (const Exchange& pair : pairs) swap_contents(pair.a, pair.b);
  for (const Exchange& pair : pairs) {
    for (const int position : {pair.a, pair.b}) {
      const int tenant = owner_[position];
      if (tenant >= 0) places_[tenant].region = ground_.region_at(tenant, position);
    }
  }
  settle(cores_, tenants_);
}

std::vector<double> Layout::most_gains() const {
  return std::vector<double>(places_.size(), std::numeric_limits<double>::infinity());
}

std::unique_ptr<Layout> make_layout(const Ground& ground) {
  return ground.weighting() == Weighting::request ? make_request_layout(ground) : make_overlap_layout(ground);
}

}  // namespace berth::policies::optimal
