// SPDX-License-Identifier: Apache-2.0
// Each newcomer is given a region, the largest newcomers first. A bipartite matching then decides whether all
// can have their vCPUs there: a newcomer may hand a vCPU over to another one if it gets a different one in
// its own region. Where that fails, the search goes back to the last newcomer that has another region to try.
#include "policies/vcpus/optimal/packing.h"

#include "policies/vcpus/marks.h"

#include <algorithm>
#include <utility>

namespace berth::policies::optimal {

namespace {

class Packing {
 public:
  Packing(const Ground& ground, const Places& places, Work& work)
      : ground_(ground),
        node_(ground.node()),
        work_(work),
        places_(places),
        owner_(static_cast<std::size_t>(node_.size()), kNone),
        visited_(node_.size()) {
    for (int position = 0; position < node_.size(); ++position) {
      if (!ground.givable(position)) owner_[position] = kFixed;
    }
    for (const Place& place : places) {
      for (const int position : place.cpus) owner_[position] = kFixed;
    }
  }

  // Makes room for all of them; false where that cannot be. Then nothing is changed.
  bool serve(std::vector<int> newcomers) {
    std::stable_sort(newcomers.begin(), newcomers.end(),
                     [&](int a, int b) { return ground_.tenant(a).vcpus > ground_.tenant(b).vcpus; });
    const std::vector<int> before = owner_;
    const Places places_before = places_;
    for (int& owner : owner_) owner = owner >= 0 ? kNone : owner;
    for (const int tenant : newcomers) places_[tenant] = {};
    if (serve_from(newcomers, 0)) return true;
    owner_ = before;
    places_ = places_before;
    return false;
  }

  // Makes room for one more, without a change of regions for others.
  bool add(int tenant) {
    const auto& regions = ground_.regions(tenant);
    return std::any_of(regions.begin(), regions.end(), [&](int region) { return fit(tenant, region); });
  }

  Places take() {
    for (int position = 0; position < node_.size(); ++position) {
      if (owner_[position] >= 0) places_[owner_[position]].cpus.push_back(position);
    }
    return std::move(places_);
  }

 private:
  static constexpr int kNone = -1;
  static constexpr int kFixed = -2;

  bool serve_from(const std::vector<int>& newcomers, std::size_t at) {
    if (at == newcomers.size()) return true;
    const int tenant = newcomers[at];
    for (const int region : ground_.regions(tenant)) {
      const std::vector<int> before = owner_;
      if (!fit(tenant, region)) continue;
      if (serve_from(newcomers, at + 1)) return true;
      owner_ = before;
      places_[tenant] = {};
    }
    return false;
  }

  bool fit(int tenant, int region) {
    const std::vector<int> before = owner_;
    places_[tenant].region = region;
    for (int i = 0; i < ground_.tenant(tenant).vcpus; ++i) {
      visited_.clear();
      if (work_.spend(node_.size() / 16.0) && find_one(tenant)) continue;
      owner_ = before;
      places_[tenant] = {};
      return false;
    }
    return true;
  }

  // One more vCPU for the tenant, in its region.
  bool find_one(int tenant) {
    for (const int position : node_.region(places_[tenant].region).window) {
      if (owner_[position] == kFixed || !ground_.may_have(tenant, position)) continue;
      if (!visited_.mark(position)) continue;
      if (owner_[position] != kNone && !find_one(owner_[position])) continue;
      owner_[position] = tenant;
      return true;
    }
    return false;
  }

  const Ground& ground_;
  const Node& node_;
  Work& work_;
  Places places_;           // of newcomers: the region alone
  std::vector<int> owner_;  // newcomers; kNone, kFixed
  Marks visited_;
};

}  // namespace

Places pack(const Ground& ground, const Places& places, const std::vector<int>& newcomers, Work& work) {
  Packing packing(ground, places, work);
  int left = ground.node().usable_count() - ground.best_effort().min_cpus;
  for (const Place& place : places) left -= static_cast<int>(place.cpus.size());
  std::vector<int> served;
  for (const int tenant : newcomers) {
    const int vcpus = ground.tenant(tenant).vcpus;
    if (ground.regions(tenant).empty() || vcpus > left) continue;
    served.push_back(tenant);
    if (packing.add(tenant) || packing.serve(served)) {
      left -= vcpus;
    } else {
      served.pop_back();
    }
  }
  return packing.take();
}

}  // namespace berth::policies::optimal
