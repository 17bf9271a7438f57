// SPDX-License-Identifier: Apache-2.0
// The layout of the published weighting. An instance's score needs two sums over other instances: those on
// its cores, and those in its region. An exchange changes the first for the instances on the cores that it
// touches. It changes the second, for all instances of a region, only where an instance enters or leaves that
// region.
#include "policies/vcpus/optimal/layout.h"
#include "policies/vcpus/score.h"

#include <algorithm>
#include <utility>

namespace berth::policies::optimal {

namespace {

class RequestLayout : public Layout {
 public:
  explicit RequestLayout(const Ground& ground)
      : Layout(ground),
        parts_(static_cast<std::size_t>(ground.tenant_count())),
        present_(node_.regions().size()),
        seen_(ground.tenant_count()),
        changed_(static_cast<int>(node_.regions().size())) {}

  double total() const override { return total_; }
  double cost() const override { return 4; }

 protected:
  void rebuild() override {
    std::fill(present_.begin(), present_.end(), Requested());
    total_ = 0;
    for (int tenant = 0; tenant < ground_.tenant_count(); ++tenant) {
      parts_[tenant] = {};
      if (!places_[tenant].taken()) continue;
      find_reach(tenant);
      enter(tenant);
    }
    for (int tenant = 0; tenant < ground_.tenant_count(); ++tenant) {
      if (!places_[tenant].taken()) continue;
      meet(tenant);
      price(tenant);
    }
  }

  void lift(const std::vector<int>&, const std::vector<int>&) override {}

  void settle(const std::vector<int>&, const std::vector<int>& tenants) override {
    changed_.clear();
    bool any = false;
    for (const int tenant : tenants) {
      find_reach(tenant);
      if (reach_ != parts_[tenant].reach) {
        leave(tenant);
        enter(tenant);
        any = true;
      }
      meet(tenant);
    }
    for (const int tenant : tenants) price(tenant);
    if (!any) return;
    for (int tenant = 0; tenant < ground_.tenant_count(); ++tenant) {
      if (places_[tenant].taken() && changed_.marked(places_[tenant].region)) price(tenant);
    }
  }

 private:
  struct Part {
    std::vector<int> reach;  // the regions in which others meet it
    Requested mates;         // those on its cores
    double cost = 0;
  };

  // Ascending, into reach_.
  void find_reach(int tenant) {
    reach_.clear();
    for (const int position : places_[tenant].cpus) {
      for_each_region(node_.core(position), [&](int region) {
        if (std::find(reach_.begin(), reach_.end(), region) == reach_.end()) reach_.push_back(region);
      });
    }
    std::sort(reach_.begin(), reach_.end());
  }

  void leave(int tenant) {
    for (const int region : parts_[tenant].reach) {
      present_[region].remove(ground_.tenant(tenant));
      changed_.mark(region);
    }
  }
  void enter(int tenant) {
    parts_[tenant].reach = reach_;
    for (const int region : reach_) {
      present_[region].add(ground_.tenant(tenant));
      changed_.mark(region);
    }
  }

  void meet(int tenant) {
    seen_.clear();
    seen_.mark(tenant);
    Requested mates;
    for (const int position : places_[tenant].cpus) {
      for (const int thread : node_.core_threads(node_.core(position))) {
        if (owner_[thread] >= 0 && seen_.mark(owner_[thread])) mates.add(ground_.tenant(owner_[thread]));
      }
    }
    parts_[tenant].mates = mates;
  }

  void price(int tenant) {
    const Tenant& it = ground_.tenant(tenant);
    Part& part = parts_[tenant];
    Requested others = present_[places_[tenant].region];
    others.remove(it);
    others.remove(part.mates);
    const double cost = it.vcpus * (it.model.k1 * part.mates.mean() + it.model.k2 * others.mean());
    total_ += cost - part.cost;
    part.cost = cost;
  }

  std::vector<Part> parts_;         // by tenant
  std::vector<Requested> present_;  // by region
  double total_ = 0;
  Marks seen_;
  Marks changed_;
  std::vector<int> reach_;
};

}  // namespace

std::unique_ptr<Layout> make_request_layout(const Ground& ground) {
  return std::make_unique<RequestLayout>(ground);
}

}  // namespace berth::policies::optimal
