// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/optimal/ground.h"
#include "policies/vcpus/optimal/work.h"

#include <optional>
#include <vector>

namespace berth::policies::optimal {

// The tenants that share a domain.
struct Partition {
  // No placement of these tenants has a lower total, all limits aside.
  double bound = 0;
  std::vector<std::vector<int>> domains;  // tenants of each; empty where it is not known
};

// The partition over the domains, of the tenants that `places` has, whose bound is the least. It ends with
// less where the bound comes to `enough`. nullopt where it cannot tell: domains or cores are not alike, berth
// may not use a vCPU, a tenant spans domains, there are many tenants, or no work is left. partition.cpp says
// why the bound holds.
std::optional<Partition> best_partition(const Ground& ground, const Places& places, double enough,
                                        Work& work);

// A bound so near below a total is as good as one that is nearer.
bool is_close(double total, double bound);

// The same where `bound`, another bound of these tenants, is not close to the total of `places`. The greater
// of both bounds counts.
Partition raised_bound(const Ground& ground, const Places& places, double total, double bound, Work& work);

}  // namespace berth::policies::optimal
