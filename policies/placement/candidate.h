// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/placement/gpus.h"
#include "policies/placement/host.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace berth::policies {

// Shares of cores are sums: their last bit must not decide. In cores.
inline constexpr double kCoresRounding = 1e-9;

enum class Lack { nothing, closed, vcpus_declared, cpu, memory, gpus };

// The resources of a bin for a request, by its figures alone. choose_vcpus() decides whether it has vCPUs
// near each other.
struct Candidate {
  std::size_t host = 0;
  std::size_t bin = 0;             // index of a single node
  std::shared_ptr<const Bin> set;  // a set of nodes as one bin; then `bin` has no meaning
  double distance = 0;             // sum of the distances between the nodes of the set
  Lack lack = Lack::nothing;       // if it is not `nothing`, only `lack` and the earlier findings count
  double cpu_left = 0;
  std::uint64_t memory_left = 0;
  double free_share = 0;          // mean of both, as shares of what there is
  std::vector<std::size_t> gpus;  // indices into the bin's
  int gpus_left = 0;              // idle ones
  Linkage linkage{};              // of `gpus`
  std::uint64_t gpu_memory_left = 0;
  // Least first. Ties go by the host's name, then by NUMA node.
  PlaceOrder order{};
};

const Bin& bin_of(const Host& on, const Candidate& candidate);
// The place that it has once `cpus` are chosen.
Spot spot_of(const Host& on, const Candidate& candidate, const model::CpuSet& cpus);

// `host` and `bin`: indices; the host itself is `on`.
Candidate consider(const Host& on, std::size_t host, std::size_t bin, const model::PendingWorkload& request);
// The bins of the host with these indices together, ascending; at most kMostDistantNodes.
Candidate consider_set(const Host& on, std::size_t host, const std::vector<std::size_t>& bins,
                       const model::PendingWorkload& request);

// Orders a candidate by the rise of its host's score too. Only latency-sensitive requests without GPUs are.
void order_by_rise(Candidate& candidate, const model::PendingWorkload& request, double rise);

// In words, with numbers: the bin's lack for the request; or, if it fits, the figure that decided its place.
std::string describe_lack(const Host& on, const Candidate& candidate, const model::PendingWorkload& request);
std::string describe_place(const Host& on, const Candidate& candidate, const model::PendingWorkload& request);

// Whether `a` is better than `b` by the order of docs/decisions/placement.md.
bool better(std::span<const Host> hosts, const Candidate& a, const Candidate& b);

}  // namespace berth::policies
