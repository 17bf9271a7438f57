// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/candidate.h"

#include "model/bytes_text.h"
#include "model/count_text.h"
#include "model/json.h"
#include "model/placement_findings.h"
#include "policies/placement/gpus.h"
#include "policies/vcpus/pool.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::bytes_in_four_digits;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

bool sensitive(const model::PendingWorkload& request) {
  return request.workload_class == model::WorkloadClass::latency_sensitive;
}

// Rounding must not decide between bins of equal worth.
double rounded(double figure) { return std::round(figure * 1e9); }

// The places in Candidate::order.
enum Order : std::size_t {
  by_told,
  by_nodes,
  by_set_links,
  by_distance,
  by_gpus,
  by_links,
  by_gpu_bin,
  by_service,
  by_rise,
  by_rest
};

void set_order(Candidate& candidate, const Host& on, const Bin& bin, const model::PendingWorkload& request) {
  auto& order = candidate.order;
  order[by_told] = request.told_cpus.is_subset_of(bin.cpus) ? 0 : 1;
  order[by_nodes] = static_cast<double>(bin.nodes.size());
  order[by_distance] = candidate.distance;
  const PlacementSettings& settings = on.settings().placement;
  if (request.gpus > 0) {
    order[by_set_links] = candidate.set ? candidate.linkage.distance : 0;
    order[by_gpus] = candidate.gpus_left;
    order[by_links] = candidate.linkage.distance;
    order[by_gpu_bin] = static_cast<double>(candidate.gpu_memory_left);
    order[by_rest] = rounded(candidate.cpu_left);
    return;
  }
  const bool avoided = !bin.gpus.empty() && settings.avoid_gpu_nodes;
  order[by_gpu_bin] = avoided ? 1 : 0;
  order[by_rest] = avoided ? candidate.gpus_left : -rounded(candidate.free_share);
  if (sensitive(request) && settings.spread_service && on.has_instance_of(request.service))
    order[by_service] = 1;
}

// Fills in all but what names the bin.
void judge(Candidate& candidate, const Host& on, const Bin& home, const model::PendingWorkload& request) {
  if (!on.open()) {
    candidate.lack = Lack::closed;
    return;
  }
  if (sensitive(request) && !request.vcpus && !on.shares(request)) {
    candidate.lack = Lack::vcpus_declared;
    return;
  }
  candidate.cpu_left = on.free_cores(home, request.workload_class) - request.vcpus.value_or(0);
  if (candidate.cpu_left < 0 && candidate.cpu_left > -kCoresRounding) candidate.cpu_left = 0;
  if (candidate.cpu_left < 0 || home.unowned.empty()) {
    candidate.lack = Lack::cpu;
    return;
  }
  const std::uint64_t free_memory = on.free_memory_bytes();
  if (request.memory_request_bytes > free_memory) {
    candidate.lack = Lack::memory;
    return;
  }
  candidate.memory_left = free_memory - request.memory_request_bytes;
  candidate.free_share =
      (share(candidate.cpu_left, on.size_cores(home, request.workload_class)) +
       share(static_cast<double>(candidate.memory_left), static_cast<double>(on.total_memory_bytes()))) /
      2;
  if (request.gpus > 0) {
    candidate.gpus = choose_gpus(home, request);
    if (std::ssize(candidate.gpus) < request.gpus) {
      candidate.lack = Lack::gpus;
      return;
    }
    candidate.linkage = linkage_of(home, candidate.gpus);
  }
  candidate.gpus_left = static_cast<int>(
      std::count_if(home.gpus.begin(), home.gpus.end(), [](const BinGpu& gpu) { return gpu.idle(); }));
  for (const std::size_t index : candidate.gpus) {
    const BinGpu& gpu = home.gpus[index];
    candidate.gpus_left -= gpu.idle() ? 1 : 0;
    // A GPU named in an admission may have less free memory by now.
    const std::uint64_t free = gpu.free_bytes.value_or(0);
    const std::uint64_t left = free > request.gpu_memory_bytes ? free - request.gpu_memory_bytes : 0;
    candidate.gpu_memory_left = std::min(model::kMaxBytes, candidate.gpu_memory_left + left);
  }
  set_order(candidate, on, home, request);
}

}  // namespace

const Bin& bin_of(const Host& on, const Candidate& candidate) {
  return candidate.set ? *candidate.set : on.bins()[candidate.bin];
}

Spot spot_of(const Host& on, const Candidate& candidate, const model::CpuSet& cpus) {
  const Bin& bin = bin_of(on, candidate);
  Spot spot{.nodes = bin.nodes, .cpus = cpus, .gpus = {}};
  for (const std::size_t index : candidate.gpus) spot.gpus.push_back(bin.gpus[index].id);
  return spot;
}

Candidate consider(const Host& on, std::size_t host, std::size_t bin, const model::PendingWorkload& request) {
  Candidate candidate{.host = host, .bin = bin, .set = {}, .gpus = {}};
  judge(candidate, on, on.bins()[bin], request);
  return candidate;
}

Candidate consider_set(const Host& on, std::size_t host, const std::vector<std::size_t>& bins,
                       const model::PendingWorkload& request) {
  Candidate candidate{
      .host = host, .bin = 0, .set = std::make_shared<const Bin>(on.together(bins)), .gpus = {}};
  for (std::size_t i = 0; i < bins.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) candidate.distance += on.distance(bins[i], bins[j]);
  }
  judge(candidate, on, *candidate.set, request);
  return candidate;
}

void order_by_rise(Candidate& candidate, const model::PendingWorkload& request, double rise) {
  if (request.gpus == 0) candidate.order[by_rise] = rounded(rise);
}

std::string describe_lack(const Host& on, const Candidate& candidate, const model::PendingWorkload& request) {
  const Bin& bin = bin_of(on, candidate);
  switch (candidate.lack) {
    case Lack::nothing:
      break;
    case Lack::closed:
      return on.closed();
    case Lack::vcpus_declared:
      return "declares no vcpus, which a pin needs; give it vcpus, or a CPU quota";
    case Lack::cpu: {
      const double free = std::max(0.0, on.free_cores(bin, request.workload_class));
      return fmt::format("asks {}; {:.3g} of {:.4g} are free{}",
                         model::count_text(request.vcpus.value_or(0), "vCPU"), free,
                         on.total_cores(bin, request.workload_class), reserved_text(on.node()));
    }
    case Lack::memory:
      if (on.total_memory_bytes() == 0) {
        return fmt::format("asks {} of memory; the host's amount of memory is not known",
                           bytes_in_four_digits(request.memory_request_bytes));
      }
      return fmt::format("asks {} of memory; {} of {} are free on the host",
                         bytes_in_four_digits(request.memory_request_bytes),
                         bytes_in_four_digits(on.free_memory_bytes()),
                         bytes_in_four_digits(on.total_memory_bytes()));
    case Lack::gpus:
      return describe_missing_gpus(bin, request);
  }
  return {};
}

std::string describe_place(const Host& on, const Candidate& candidate,
                           const model::PendingWorkload& request) {
  const Bin& bin = bin_of(on, candidate);
  std::string set;
  if (candidate.set)
    set = fmt::format("{} together, {:.4g} apart; ", model::nodes_text(bin.nodes), candidate.distance);
  if (request.gpus > 0) {
    std::string text = fmt::format(
        "{}leaves {} idle, {} free on the GPUs that it gets, {:.4g} of {:.4g} vCPUs", set,
        model::count_text(candidate.gpus_left, "GPU"), bytes_in_four_digits(candidate.gpu_memory_left),
        candidate.cpu_left, on.total_cores(bin, request.workload_class));
    const std::string linked = describe_linkage(candidate.linkage, candidate.gpus.size());
    return linked.empty() ? text : text + "; " + linked;
  }
  std::string left = fmt::format("{}leaves {:.4g} of {:.4g} vCPUs, {} of memory ({:.0f} % of both free)", set,
                                 candidate.cpu_left, on.total_cores(bin, request.workload_class),
                                 bytes_in_four_digits(candidate.memory_left), 100 * candidate.free_share);
  if (bin.gpus.empty()) return left;
  return fmt::format("{}, near {}, {} idle", left, model::count_text(bin.gpus.size(), "GPU"),
                     candidate.gpus_left);
}

bool better(std::span<const Host> hosts, const Candidate& a, const Candidate& b) {
  if (a.order != b.order) return a.order < b.order;
  const Host& on_a = hosts[a.host];
  const Host& on_b = hosts[b.host];
  if (const int names = on_a.name().compare(on_b.name()); names != 0) return names < 0;
  return bin_of(on_a, a).nodes.to_vector() < bin_of(on_b, b).nodes.to_vector();
}

}  // namespace berth::policies
