// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "policies/vcpus/node.h"

#include <vector>

namespace berth::policies {

// A latency-sensitive instance as scoring sees it. `cpus` is empty while it is not placed.
struct Tenant {
  int vcpus = 0;
  double pressure = 0;  // u of its service, 0..1
  model::InterferenceModel model;
  int region = -1;        // its domain
  std::vector<int> cpus;  // positions
};

// The needs of best-effort workloads on the vCPUs that are left.
struct BestEffortDemand {
  double use_cores = 0;
  int min_cpus = 1;             // at least 1: they never get an empty set
  bool avoid_siblings = false;  // a wish; given up where fewer than min_cpus would be left
};

struct PoolState {
  bool spares_siblings = false;
  int size = 0;
  double utilisation = 0;  // 0..1
};
// The pool when `complement` vCPUs have no owner and `spared` of these share no core with an owned one.
PoolState pool_state(int complement, int spared, const BestEffortDemand& demand);

// The owner of each vCPU, with the counts that scoring needs at every step.
class Occupancy {
 public:
  // No tenant is placed. `node` must outlive this.
  Occupancy(const Node& node, std::vector<Tenant> tenants);

  // Changes the number of vCPUs that a tenant without any is to get.
  void ask(int tenant, int vcpus) { tenants_[tenant].vcpus = vcpus; }

  // Gives `cpus` (positions, all free and usable) to a tenant that has none.
  void place(int tenant, int region, std::vector<int> cpus);
  // Adds a tenant with its vCPUs; it becomes the last one.
  void add(Tenant placed);

  const Node& node() const { return *node_; }
  const std::vector<Tenant>& tenants() const { return tenants_; }
  const Tenant& tenant(int index) const { return tenants_[index]; }
  bool placed(int tenant) const { return tenants_[tenant].region >= 0; }
  int placed_count() const { return placed_count_; }

  // Tenant that owns a position; -1 when none.
  int owner(int position) const { return owner_[position]; }
  // Pressure of the owner; 0 when there is none.
  double owner_pressure(int position) const {
    return owner_[position] < 0 ? 0.0 : tenants_[owner_[position]].pressure;
  }
  // Usable and without an owner.
  bool unowned(int position) const { return node_->usable(position) && owner_[position] < 0; }
  // Unowned, and no thread of its core is owned.
  bool spared(int position) const { return unowned(position) && owned_in_core_[node_->core(position)] == 0; }
  int unowned_count() const { return unowned_count_; }
  int spared_count() const { return spared_count_; }

  // Tenants with a vCPU in the region, ascending.
  std::vector<int> tenants_in(int region) const;
  // Number of a tenant's vCPUs in the region.
  int share(int tenant, int region) const;

 private:
  const Node* node_;
  std::vector<Tenant> tenants_;
  std::vector<int> owner_;
  std::vector<int> owned_in_core_;
  int unowned_count_ = 0;
  int spared_count_ = 0;
  int placed_count_ = 0;
};

}  // namespace berth::policies
