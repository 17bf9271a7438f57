// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/placement/candidate.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace berth::policies {

// Sets of NUMA nodes for a request that no single node of a host holds (docs/decisions/placement.md, wide
// requests).

// Limits of the search. Hosts with more nodes than model::kMostDistantNodes have no sets. One by one it looks
// at kMostSets sets at most, which are all sets of 16 nodes. Larger sets it grows from each node, by the
// nearest one that adds to it. It compares the links of GPUs where there are at most kMostLinkedSets sets of
// a size. Of sets that are equal by size, links and distance it compares the first kMostEqualSets.
inline constexpr std::uint64_t kMostSets = 65'536;
inline constexpr std::uint64_t kMostLinkedSets = 128;
inline constexpr std::size_t kMostEqualSets = 64;

// The nodes of the vCPUs and GPUs that the admission of a latency-sensitive request told, where they are
// several and it can have them; else nothing.
std::optional<Candidate> told_set(const Host& on, std::size_t host, const model::PendingWorkload& request);

// All nodes of the host together, where several nodes could hold what one does not; else nothing. It does not
// help where the host takes no work, where it lacks memory, or where every domain of a latency-sensitive
// request without GPUs lies in one node.
std::optional<Candidate> all_nodes(const Host& on, std::size_t host, const model::PendingWorkload& request);

// The smallest sets of nodes that hold the request by their figures. Of these the ones whose GPUs are linked
// best, and then the ones with the least sum of distances, in the order of their nodes. None lacks anything.
// For a request that fits no single node.
std::vector<Candidate> smallest_sets(const Host& on, std::size_t host, const model::PendingWorkload& request);

}  // namespace berth::policies
