// SPDX-License-Identifier: Apache-2.0
#include "policies/vcpus/candidate_score.h"

#include "policies/vcpus/marks.h"
#include "policies/vcpus/score.h"

namespace berth::policies {

namespace {

// The published weighting. For a placed tenant, a candidate is on one of its cores, elsewhere in its domain,
// or out of reach. Its score in each of the three cases is known beforehand.
class RequestScorer : public CandidateScorer {
 public:
  RequestScorer(const Occupancy& occupancy, const Tenant& tenant, int region)
      : occupancy_(occupancy),
        node_(occupancy.node()),
        tenant_(tenant),
        region_(region),
        on_core_(static_cast<int>(occupancy.tenants().size())),
        reached_(static_cast<int>(node_.regions().size())),
        homes_(node_.regions().size()),
        core_gain_(occupancy.tenants().size(), 0.0) {
    std::vector<Requested> present(node_.regions().size());
    std::vector<char> summed(node_.regions().size(), 0);
    for (const int i : occupancy.tenants_in(region)) {
      const Tenant& other = occupancy.tenant(i);
      all_.add(other);
      if (summed[other.region] == 0) {
        summed[other.region] = 1;
        for (const int j : occupancy.tenants_in(other.region)) present[other.region].add(occupancy.tenant(j));
      }
      on_core_.clear();
      on_core_.mark(i);
      Requested sc;
      for_each_core_mate(other.cpus, [&](int mate) { sc.add(occupancy.tenant(mate)); });
      Requested ss = present[other.region];
      ss.remove(other);
      ss.remove(sc);

      const int share = occupancy.share(i, region);
      const auto score_with = [&](const Requested& same_core, const Requested& same_domain) {
        return share * (other.model.k1 * same_core.mean() + other.model.k2 * same_domain.mean());
      };
      Requested ss_with = ss;
      ss_with.add(tenant_);
      Requested sc_with = sc;
      sc_with.add(tenant_);
      const double as_neighbour = score_with(sc, ss_with);
      homes_[other.region].apart += score_with(sc, ss);
      homes_[other.region].neighbour += as_neighbour;
      core_gain_[i] = score_with(sc_with, ss) - as_neighbour;
    }
  }

  double score(const std::vector<int>& cpus) override {
    reached_.clear();
    reached_.mark(node_.whole());
    for (const int position : cpus) {
      reached_.mark(node_.domain(position));
      reached_.mark(node_.socket(position));
    }
    double sum = 0;
    for (int home = 0; home <= node_.whole(); ++home) {
      sum += reached_.marked(home) ? homes_[home].neighbour : homes_[home].apart;
    }
    on_core_.clear();
    Requested sc;
    for_each_core_mate(cpus, [&](int mate) {
      sc.add(occupancy_.tenant(mate));
      sum += core_gain_[mate];
    });
    Requested ss = all_;
    ss.remove(sc);
    sum += tenant_.vcpus * (tenant_.model.k1 * sc.mean() + tenant_.model.k2 * ss.mean());
    return sum / static_cast<double>(node_.region(region_).cpus.size());
  }

 private:
  // Tenants on the cores of `cpus`, each once, those already marked left out.
  template <typename Visit>
  void for_each_core_mate(const std::vector<int>& cpus, Visit visit) {
    for (const int position : cpus) {
      for (const int thread : node_.core_threads(node_.core(position))) {
        const int mate = occupancy_.owner(thread);
        if (mate >= 0 && on_core_.mark(mate)) visit(mate);
      }
    }
  }

  // Summed over the tenants whose domain is one region.
  struct Home {
    double apart = 0;      // the candidate is out of reach
    double neighbour = 0;  // it is in their domain, on none of their cores
  };

  const Occupancy& occupancy_;
  const Node& node_;
  const Tenant& tenant_;
  int region_;
  Requested all_;  // every tenant in the region
  Marks on_core_;
  Marks reached_;
  std::vector<Home> homes_;        // by region
  std::vector<double> core_gain_;  // by tenant: score added by sharing a core instead of only the domain
};

// A quantity that is linear in the vCPUs' pressures, split by the source of the pressure: owners, and the
// best-effort pool in its two possible extents. So one pass serves for either extent of the pool.
struct Channels {
  double owned = 0;
  double unowned = 0;
  double spared = 0;
  void add(double weight, const Channels& other) {
    owned += weight * other.owned;
    unowned += weight * other.unowned;
    spared += weight * other.spared;
  }
};

// The weighting by real overlap. The placed tenants' sum is linear in the vCPUs' pressures: sum = weight .
// pressure. A candidate changes the pressure of its own vCPUs and ends the sparing of their siblings.
class OverlapScorer : public CandidateScorer {
 public:
  OverlapScorer(const Occupancy& occupancy, const BestEffortDemand& demand, const Tenant& tenant, int region)
      : occupancy_(occupancy),
        node_(occupancy.node()),
        demand_(demand),
        tenant_(tenant),
        region_(region),
        own_(node_.size()),
        cores_(node_.core_count()),
        weight_(static_cast<std::size_t>(node_.size()), 0.0) {
    std::vector<double> region_weight(node_.regions().size(), 0.0);
    for (const int i : occupancy.tenants_in(region)) add_weights(i, region_weight);
    for (int home = 0; home <= node_.whole(); ++home) {
      if (region_weight[home] == 0) continue;
      for (const int position : node_.region(home).cpus) weight_[position] += region_weight[home];
    }
    for (int position = 0; position < node_.size(); ++position) placed_.add(weight_[position], at(position));
    for (const int position : node_.region(region).cpus) region_sum_.add(1, at(position));
  }

  double score(const std::vector<int>& cpus) override {
    own_.clear();
    cores_.clear();
    for (const int position : cpus) own_.mark(position);

    Channels sum = placed_;
    Channels outside = region_sum_;  // becomes the region's pressure outside the candidate's cores
    Channels siblings;
    int outside_count = static_cast<int>(node_.region(region_).cpus.size());
    int spared = occupancy_.spared_count();
    for (const int position : cpus) {
      const std::vector<int>& threads = node_.core_threads(node_.core(position));
      for (const int thread : threads) {
        if (thread == position) continue;
        if (own_.marked(thread)) {
          siblings.owned += tenant_.pressure;
        } else {
          siblings.owned += occupancy_.owner_pressure(thread);
          siblings.unowned += occupancy_.unowned(thread) ? 1 : 0;
        }
      }
      sum.add(weight_[position], {.owned = tenant_.pressure, .unowned = -1, .spared = 0});
      if (!cores_.mark(node_.core(position))) continue;
      outside_count -= static_cast<int>(threads.size());
      for (const int thread : threads) {
        const Channels before = at(thread);
        outside.add(-1, before);
        sum.spared -= weight_[thread] * before.spared;
        spared -= before.spared > 0 ? 1 : 0;
      }
    }
    sum.add(tenant_.model.k1, siblings);
    if (outside_count > 0) sum.add(tenant_.vcpus * tenant_.model.k2 / outside_count, outside);

    const PoolState pool = pool_state(occupancy_.unowned_count() - tenant_.vcpus, spared, demand_);
    const double total = sum.owned + pool.utilisation * (pool.spares_siblings ? sum.spared : sum.unowned);
    return total / static_cast<double>(node_.region(region_).cpus.size());
  }

 private:
  Channels at(int position) const {
    return {.owned = occupancy_.owner_pressure(position),
            .unowned = occupancy_.unowned(position) ? 1.0 : 0.0,
            .spared = occupancy_.spared(position) ? 1.0 : 0.0};
  }

  // Adds one placed tenant's part to the weights of the vCPUs that affect it.
  void add_weights(int i, std::vector<double>& region_weight) {
    const Tenant& other = occupancy_.tenant(i);
    const double share = occupancy_.share(i, region_);
    const double per_sibling = share * other.model.k1 / other.vcpus;
    cores_.clear();
    int outside = static_cast<int>(node_.region(other.region).cpus.size());
    for (const int position : other.cpus) {
      const std::vector<int>& threads = node_.core_threads(node_.core(position));
      for (const int thread : threads) {
        if (thread != position) weight_[thread] += per_sibling;
      }
      if (cores_.mark(node_.core(position))) outside -= static_cast<int>(threads.size());
    }
    if (outside == 0) return;
    const double per_outside = share * other.model.k2 / outside;
    region_weight[other.region] += per_outside;
    cores_.clear();
    for (const int position : other.cpus) {
      if (!cores_.mark(node_.core(position))) continue;
      for (const int thread : node_.core_threads(node_.core(position))) weight_[thread] -= per_outside;
    }
  }

  const Occupancy& occupancy_;
  const Node& node_;
  BestEffortDemand demand_;
  const Tenant& tenant_;
  int region_;
  Marks own_;
  Marks cores_;
  std::vector<double> weight_;  // by position
  Channels placed_;             // the placed tenants' sum before the candidate
  Channels region_sum_;
};

}  // namespace

std::unique_ptr<CandidateScorer> make_scorer(const Occupancy& occupancy, Weighting weighting,
                                             const BestEffortDemand& demand, const Tenant& tenant,
                                             int region) {
  if (weighting == Weighting::request) return std::make_unique<RequestScorer>(occupancy, tenant, region);
  return std::make_unique<OverlapScorer>(occupancy, demand, tenant, region);
}

}  // namespace berth::policies
