// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/settings.h"
#include "policies/vcpus/occupancy.h"

#include <vector>

namespace berth::policies {

// Sums of r*u and r over some tenants; their quotient is the published neighbour pressure.
struct Requested {
  double pressure = 0;
  int vcpus = 0;
  void add(const Tenant& tenant) {
    pressure += tenant.vcpus * tenant.pressure;
    vcpus += tenant.vcpus;
  }
  void remove(const Tenant& tenant) {
    pressure -= tenant.vcpus * tenant.pressure;
    vcpus -= tenant.vcpus;
  }
  void remove(const Requested& others) {
    pressure -= others.pressure;
    vcpus -= others.vcpus;
  }
  double mean() const { return vcpus > 0 ? pressure / vcpus : 0.0; }
};

struct TenantScore {
  double cpu_sc = 0;
  double cpu_ss = 0;
  double score = 0;
};

struct NodeScore {
  std::vector<TenantScore> tenants;  // zeros for those not placed
  std::vector<double> domains;       // score_domain by domain index of the node
  double node = 0;                   // score_node
};

// Scores of every placed tenant, and the sums over domains and node (docs/decisions/interference.md, scores).
NodeScore evaluate(const Occupancy& occupancy, Weighting weighting, const BestEffortDemand& demand);

}  // namespace berth::policies
