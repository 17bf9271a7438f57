// SPDX-License-Identifier: Apache-2.0
// The layout of the weighting by real overlap.
//
// An instance's own score, times its r vCPUs, is
//
//     k1 * siblings + g * (S - around),     g = r * k2 / (N - t)
//
// where `siblings` sums the pressure of the sibling threads of its vCPUs. `around` is the pressure on its
// physical cores and t the number of their threads. S and N are the pressure and the number of threads in its
// region; g is 0 where t = N. So the sum over all instances is
//
//     sum over instances of (k1 * siblings - g * around) + sum over regions of G * S
//
// where G sums the g of the instances in that region. An exchange changes the first sum only for the
// instances on the cores that it touches, and the second only by their g and by the pressure that crosses
// regions.
#include "policies/vcpus/optimal/layout.h"

#include <algorithm>
#include <numeric>

namespace berth::policies::optimal {

namespace {

// Pressure, or a quantity linear in it, where the pool's utilisation depends on the placement. It is split by
// source: owners, and the pool in its two possible extents.
struct Channels {
  double owned = 0;
  double unowned = 0;
  double spared = 0;
  Channels& operator+=(const Channels& other) {
    owned += other.owned;
    unowned += other.unowned;
    spared += other.spared;
    return *this;
  }
  Channels& operator-=(const Channels& other) { return *this += -1.0 * other; }
  friend Channels operator+(Channels a, const Channels& b) { return a += b; }
  friend Channels operator-(Channels a, const Channels& b) { return a -= b; }
  friend Channels operator*(double factor, const Channels& it) {
    return {factor * it.owned, factor * it.unowned, factor * it.spared};
  }
};

// The pool does not depend on the placement: best-effort work also runs beside owned threads.
struct FixedPool {
  using Load = double;
  static constexpr bool kSpares = false;
  double utilisation = 0;
  Load owned(double pressure) const { return pressure; }
  Load pooled(bool) const { return utilisation; }
};

struct SparingPool {
  using Load = Channels;
  static constexpr bool kSpares = true;
  double utilisation = 0;
  Load owned(double pressure) const { return {.owned = pressure, .unowned = 0, .spared = 0}; }
  Load pooled(bool spared) const { return {.owned = 0, .unowned = 1, .spared = spared ? 1.0 : 0.0}; }
};

template <typename Pool>
class OverlapLayout : public Layout {
  using Load = typename Pool::Load;

 public:
  explicit OverlapLayout(const Ground& ground)
      : Layout(ground),
        core_load_(static_cast<std::size_t>(node_.core_count())),
        region_load_(node_.regions().size()),
        region_weight_(node_.regions().size(), 0.0),
        parts_(static_cast<std::size_t>(ground.tenant_count())) {}

  double cost() const override { return Pool::kSpares ? 2 : 1; }

  double total() const override {
    const Load sum = own_ + shared_;
    if constexpr (Pool::kSpares) {
      const PoolState pool = pool_state(unowned_, spared_, ground_.best_effort());
      return sum.owned + pool.utilisation * (pool.spares_siblings ? sum.spared : sum.unowned);
    } else {
      return sum;
    }
  }

  // A tenant that moves no longer pays, and no longer disturbs others. Where it goes, it may also displace a
  // pool of higher pressure than its own. Nothing else can lower the total.
  std::vector<double> most_gains() const override {
    if constexpr (Pool::kSpares) {
      return Layout::most_gains();
    } else {
      std::vector<double> gains(places_.size(), 0.0);
      double most_weight = 0;
      for (int position = 0; position < node_.size(); ++position) {
        const double weight = weight_at(position);
        most_weight = std::max(most_weight, weight);
        if (owner_[position] >= 0)
          gains[owner_[position]] += ground_.tenant(owner_[position]).pressure * weight;
      }
      for (int tenant = 0; tenant < static_cast<int>(places_.size()); ++tenant) {
        if (!places_[tenant].taken()) continue;
        const Tenant& it = ground_.tenant(tenant);
        const Part& part = parts_[tenant];
        gains[tenant] += own_part(tenant) + part.weight * region_load_[places_[tenant].region];
        gains[tenant] += it.vcpus * std::max(0.0, pool_.utilisation - it.pressure) * most_weight;
      }
      return gains;
    }
  }

 protected:
  void rebuild() override {
    unowned_ = node_.usable_count();
    std::vector<int> cores(node_.core_count());
    std::iota(cores.begin(), cores.end(), 0);
    std::vector<int> tenants;
    for (int tenant = 0; tenant < ground_.tenant_count(); ++tenant) {
      parts_[tenant] = {};
      if (!places_[tenant].taken()) continue;
      tenants.push_back(tenant);
      unowned_ -= static_cast<int>(places_[tenant].cpus.size());
    }
    pool_.utilisation = pool_state(unowned_, 0, ground_.best_effort()).utilisation;
    std::fill(region_load_.begin(), region_load_.end(), Load{});
    std::fill(region_weight_.begin(), region_weight_.end(), 0.0);
    own_ = {};
    shared_ = {};
    spared_ = 0;
    touched_.clear();
    for (int region = 0; region <= node_.whole(); ++region) touched_.push_back(region);
    settle(cores, tenants);
  }

  void lift(const std::vector<int>& cores, const std::vector<int>& tenants) override {
    touched_.clear();
    for (const int core : cores) for_each_region(core, [&](int region) { touch(region); });
    for (const int region : touched_) shared_ -= region_weight_[region] * region_load_[region];
    for (const int tenant : tenants) {
      const Part& part = parts_[tenant];
      own_ -= own_part(tenant);
      region_weight_[places_[tenant].region] -= part.weight;
    }
    for (const int core : cores) {
      const Load load = core_load_[core];
      for_each_region(core, [&](int region) { region_load_[region] -= load; });
      for_each_owner(core, [&](int tenant, int count) {
        Part& part = parts_[tenant];
        part.siblings -= count * (load - pool_.owned(ground_.tenant(tenant).pressure));
        part.around -= load;
        part.threads -= static_cast<int>(node_.core_threads(core).size());
      });
      if constexpr (Pool::kSpares) spared_ -= spared_on(core);
    }
  }

  void settle(const std::vector<int>& cores, const std::vector<int>& tenants) override {
    for (const int core : cores) {
      const Load load = load_on(core);
      core_load_[core] = load;
      for_each_region(core, [&](int region) { region_load_[region] += load; });
      for_each_owner(core, [&](int tenant, int count) {
        Part& part = parts_[tenant];
        part.siblings += count * (load - pool_.owned(ground_.tenant(tenant).pressure));
        part.around += load;
        part.threads += static_cast<int>(node_.core_threads(core).size());
      });
      if constexpr (Pool::kSpares) spared_ += spared_on(core);
    }
    for (const int tenant : tenants) {
      Part& part = parts_[tenant];
      const int region = places_[tenant].region;
      const Tenant& it = ground_.tenant(tenant);
      const int outside = static_cast<int>(node_.region(region).cpus.size()) - part.threads;
      part.weight = outside > 0 ? it.vcpus * it.model.k2 / outside : 0.0;
      region_weight_[region] += part.weight;
      own_ += own_part(tenant);
    }
    for (const int region : touched_) shared_ += region_weight_[region] * region_load_[region];
  }

 private:
  struct Part {
    Load siblings{};
    Load around{};
    int threads = 0;
    double weight = 0;  // g
  };

  // Every tenant on a core lies in one of the core's regions.
  void touch(int region) {
    if (std::find(touched_.begin(), touched_.end(), region) == touched_.end()) touched_.push_back(region);
  }

  Load own_part(int tenant) const {
    const Part& part = parts_[tenant];
    return ground_.tenant(tenant).model.k1 * part.siblings - part.weight * part.around;
  }

  // How much the tenants, without the owner of this position, pay for pressure there.
  double weight_at(int position) const {
    const int core = node_.core(position);
    double weight = 0;
    for_each_region(core, [&](int region) { weight += region_weight_[region]; });
    for_each_owner(core, [&](int tenant, int) { weight -= parts_[tenant].weight; });
    for (const int thread : node_.core_threads(core)) {
      if (owner_[thread] >= 0 && owner_[thread] != owner_[position]) {
        weight += ground_.tenant(owner_[thread]).model.k1;
      }
    }
    return weight;
  }

  bool untouched(int core) const {
    for (const int thread : node_.core_threads(core)) {
      if (owner_[thread] >= 0) return false;
    }
    return true;
  }

  int spared_on(int core) const {
    if (!untouched(core)) return 0;
    int count = 0;
    for (const int thread : node_.core_threads(core)) count += node_.usable(thread) ? 1 : 0;
    return count;
  }

  Load load_on(int core) const {
    const bool spared = Pool::kSpares && untouched(core);
    Load load{};
    for (const int thread : node_.core_threads(core)) {
      if (owner_[thread] >= 0) {
        load += pool_.owned(ground_.tenant(owner_[thread]).pressure);
      } else if (node_.usable(thread)) {
        load += pool_.pooled(spared);
      }
    }
    return load;
  }

  Pool pool_;
  std::vector<Load> core_load_;
  std::vector<Load> region_load_;      // S
  std::vector<double> region_weight_;  // G
  std::vector<Part> parts_;            // by tenant
  std::vector<int> touched_;           // regions of the present exchange
  Load own_{};                         // the first sum
  Load shared_{};                      // the second
  int unowned_ = 0;
  int spared_ = 0;
};

}  // namespace

std::unique_ptr<Layout> make_overlap_layout(const Ground& ground) {
  if (ground.best_effort().avoid_siblings) return std::make_unique<OverlapLayout<SparingPool>>(ground);
  return std::make_unique<OverlapLayout<FixedPool>>(ground);
}

}  // namespace berth::policies::optimal
