// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/search.h"

#include <vector>

namespace berth::policies::optimal {

// The place of one tenant; none where `region` is negative.
struct Place {
  int region = -1;
  std::vector<int> cpus;  // positions
  bool taken() const { return region >= 0; }
};
using Places = std::vector<Place>;  // by tenant

// The fixed facts of one search: which positions may be given out, and which tenant may have which. Tenant i
// is request i of the problem, which must outlive this.
class Ground {
 public:
  explicit Ground(const PlacementProblem& problem);

  const PlacementProblem& problem() const { return *problem_; }
  const Node& node() const { return problem_->node; }
  Weighting weighting() const { return problem_->settings.weighting; }
  const BestEffortDemand& best_effort() const { return problem_->best_effort; }
  int tenant_count() const { return static_cast<int>(kind_.size()); }
  // Its size, pressure and model. Its place is the standing one.
  const Tenant& tenant(int index) const { return problem_->standing.tenant(index); }

  // Usable and unreserved.
  bool givable(int position) const { return givable_[position] != 0; }
  bool may_have(int tenant, int position) const {
    const std::vector<char>& limit = limits_[limit_of_[tenant]];
    return givable_[position] != 0 && (limit.empty() || limit[position] != 0);
  }
  // The regions that a tenant of its size may have; empty where it is too large for any.
  const std::vector<int>& regions(int tenant) const { return region_lists_[regions_of_[tenant]]; }
  // The one of these that holds the position; -1 where there is none.
  int region_at(int tenant, int position) const;
  // Tenants with the same number have the same size, pressure, model and limit.
  int kind(int tenant) const { return kind_[tenant]; }
  // Tenants with the same number may have the same positions.
  int limit(int tenant) const { return limit_of_[tenant]; }
  // Whether some tenant spans domains.
  bool spanning() const { return spanning_; }

  // The places of the standing tenants.
  Places standing() const;
  // The occupancy with these places.
  Occupancy occupancy(const Places& places) const;
  // Its score_node.
  double score(const Places& places) const;

 private:
  void add_limit(const std::optional<model::CpuSet>& allowed);
  void add_regions(int vcpus);
  void add_kind(int tenant);

  const PlacementProblem* problem_;
  std::vector<char> givable_;
  std::vector<std::vector<char>> limits_;  // distinct ones, by position; empty: no limit
  std::vector<const model::CpuSet*> limit_sets_;
  std::vector<int> limit_of_;
  std::vector<std::vector<int>> region_lists_;  // distinct ones
  std::vector<int> sizes_;                      // for which each of these was asked
  std::vector<int> regions_of_;
  std::vector<int> kinds_;  // the first tenant of each kind
  std::vector<int> kind_;
  bool spanning_ = false;
};

}  // namespace berth::policies::optimal
