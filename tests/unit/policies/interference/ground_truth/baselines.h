// SPDX-License-Identifier: Apache-2.0
// Where a host puts instances without berth. Some baselines give each instance vCPUs of its own. With the
// others, the kernel moves all threads.
#pragma once

#include "model/cpu_set.h"
#include "model/topology.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/interference/ground_truth/fleet.h"

#include <cstddef>
#include <vector>

namespace berth::policies::testing {

// vCPUs for one more instance, out of those that are free. Empty: there is no room.

// Any in one cache that has enough, else any on the host.
model::CpuSet take_random(const model::Topology& topology, const model::CpuSet& free, int vcpus,
                          Draws& draws);

// As the static CPU manager of the kubelet does with `full-pcpus-only`, which gives whole cores only: from
// the socket with the fewest whole free cores, lowest cores first. It refuses a request that is not a number
// of whole cores. Here such a request gets one core more, and uses a part of it.
model::CpuSet take_packed(const model::Topology& topology, const model::CpuSet& free, int vcpus);

// From the cache with the most free vCPUs, each from the core with the most free threads, lowest first. A
// larger instance gets the rest from the next cache.
model::CpuSet take_spread(const model::Topology& topology, const model::CpuSet& free, int vcpus);

// The part of the host in which the threads of an instance float.
enum class Roams { host, socket, llc };
// Parts of a host. They are alike.
std::size_t parts_of(const World& world, Roams roams);

// As truth_of(), if all threads float. Instance i stays in the part `part[i]`. Batch work is in all parts
// alike.
std::vector<Figures> truth_of_floating(const World& world, const Mix& mix, Roams roams,
                                       const std::vector<std::size_t>& part, const Kernel& kernel,
                                       double day);

}  // namespace berth::policies::testing
