// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/placement/host.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace berth::policies {

// The GPUs of a bin that a request would get, as indices, ascending. Fewer than it asks for where there are
// no more. Of a set of nodes it takes them node by node, from the node with the most suitable ones on. A
// request that shares GPUs takes shared ones first. Among the GPUs that these two rules leave to choose from,
// it takes the ones that are linked best, if links are known. Of these it takes the ones with the least free
// memory (docs/decisions/placement.md).
std::vector<std::size_t> choose_gpus(const Bin& bin, const model::PendingWorkload& request);

// How GPUs of a bin are linked with each other.
struct Linkage {
  double distance = 0;                  // the sum over all pairs
  std::map<model::GpuLink, int> pairs;  // numbers of pairs by link; those that are not known are left out
};

// `gpus`: indices. An unknown link counts as NODE within a NUMA node, and as SYS across. Where the host knows
// no link at all, every link counts as NODE in a single node and as SYS in a set of nodes. So it is for more
// than model::kMostLinkedGpus GPUs.
Linkage linkage_of(const Bin& bin, const std::vector<std::size_t>& gpus);

// "GPUs linked by NV", "of 6 pairs of GPUs 2 are linked by NV, 4 by SYS"; empty where no link is known.
std::string describe_linkage(const Linkage& linkage, std::size_t gpus);

// Why the request does not get the other GPUs, in words.
std::string describe_missing_gpus(const Bin& bin, const model::PendingWorkload& request);

}  // namespace berth::policies
