// SPDX-License-Identifier: Apache-2.0
// Streams of requests on fleets with GPUs: how many GPU requests are placed, and how many of the GPUs left
// can no longer be used. Compares berth's placement with three others that look at the same figures.
//
//   bench-placement-streams [STREAMS [SEED [LOAD]]]
#include "policies/placement/candidate.h"
#include "policies/placement/vcpus.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/placement/gpu_hosts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

using berth::policies::Candidate;
using berth::policies::Host;
using berth::policies::Lack;
using berth::policies::PolicySettings;
using berth::policies::testing::Draws;
using berth::policies::testing::kGiB;
namespace model = berth::model;
namespace testing = berth::policies::testing;

enum Strategy { berth_own, first_fit, spread_all, pack_all, strategies };
constexpr std::array<const char*, strategies> kNames{"berth", "first-fit", "spread-all", "pack-all"};

struct Stream {
  std::vector<model::Snapshot> hosts;
  std::vector<model::PendingWorkload> requests;
};

model::Snapshot draw_host(Draws& draws, int index) {
  // One or two NUMA nodes of 16 or 32 vCPUs; GPUs on none, one or both of them.
  const int sockets = draws.number(1, 2);
  const int cores = draws.chance(0.5) ? 8 : 16;
  std::vector<model::Gpu> gpus;
  const bool large = draws.chance(0.7);
  for (int socket = 0; socket < sockets; ++socket) {
    if (draws.chance(0.5)) continue;
    for (int count = draws.chance(0.5) ? 4 : 2; count > 0; --count)
      gpus.push_back(testing::gpu("g" + std::to_string(gpus.size()), socket, large ? 80 : 24));
  }
  model::Snapshot host = testing::snapshot_of(
      model::Topology::make(testing::cpus_of({.sockets = sockets, .cores_per_llc = cores}), gpus).value());
  host.host = "node-" + std::to_string(1000 + index);
  host.memory.total_bytes = static_cast<std::uint64_t>(sockets * cores * 8) * kGiB;
  host.memory.available_bytes = host.memory.total_bytes;
  return host;
}

model::PendingWorkload draw_request(Draws& draws, int index, bool for_gpus) {
  model::PendingWorkload request = testing::request(1);
  request.id = std::to_string(index);
  if (draws.chance(0.5)) request.workload_class = model::WorkloadClass::best_effort;
  if (for_gpus) {
    request.gpus = std::array{1, 1, 1, 2, 2, 4}[static_cast<std::size_t>(draws.number(0, 5))];
    request.vcpus = request.gpus * draws.number(1, 4);
    request.gpu_memory_bytes = static_cast<std::uint64_t>(draws.chance(0.5) ? 20 : 60) * kGiB;
  } else {
    request.vcpus = draws.number(1, 8);
  }
  request.memory_request_bytes = static_cast<std::uint64_t>(*request.vcpus * draws.number(1, 4)) * kGiB;
  return request;
}

// Between 1 and 100 hosts, as many of each size as of twice the size. Requests in random order until both
// GPUs and vCPUs are asked for as far as drawn, each between half of `load` and `load` times what there is.
Stream draw_stream(std::uint64_t seed, double load) {
  Draws draws(seed);
  Stream stream;
  const int hosts = static_cast<int>(std::lround(std::pow(100.0, draws.fraction())));
  double cpus = 0;
  double gpus = 0;
  for (int i = 0; i < hosts; ++i) {
    stream.hosts.push_back(draw_host(draws, i));
    cpus += static_cast<double>(stream.hosts.back().topology.cpus().size());
    gpus += static_cast<double>(stream.hosts.back().topology.gpus().size());
  }
  cpus *= load * (0.5 + 0.5 * draws.fraction());
  gpus *= load * (0.5 + 0.5 * draws.fraction());
  while (cpus > 0 || gpus > 0) {
    const bool for_gpus = gpus > 0 && (cpus <= 0 || draws.chance(0.4));
    const auto request = draw_request(draws, static_cast<int>(stream.requests.size()), for_gpus);
    cpus -= *request.vcpus;
    gpus -= request.gpus;
    stream.requests.push_back(request);
  }
  return stream;
}

bool comes_first(Strategy strategy, const std::vector<Host>& hosts, const Candidate& a, const Candidate& b) {
  switch (strategy) {
    case spread_all:
      // GPU work too: where most is left, of GPUs first.
      if (a.gpus_left != b.gpus_left && !a.gpus.empty()) return a.gpus_left > b.gpus_left;
      if (a.free_share != b.free_share) return a.free_share > b.free_share;
      break;
    case pack_all:
      // CPU work too, and wherever least is left.
      if (a.gpus_left != b.gpus_left && !a.gpus.empty()) return a.gpus_left < b.gpus_left;
      if (a.free_share != b.free_share) return a.free_share < b.free_share;
      break;
    case berth_own:
      return berth::policies::better(hosts, a, b);
    default:
      break;
  }
  return std::pair(a.host, a.bin) < std::pair(b.host, b.bin);
}

struct Outcome {
  long gpu_requests = 0;
  long gpus = 0;
  long cpu_requests = 0;
  long gpus_idle = 0;  // at the end
  long fragments = 0;  // of these, those in a bin that not even 1 vCPU and 1 GiB are left in
  bool operator==(const Outcome&) const = default;
};

// The bins that fit, the best of them again and again until vCPUs can be had there.
bool place(Strategy strategy, std::vector<Host>& hosts, const model::PendingWorkload& request,
           std::vector<Candidate>& fitting) {
  fitting.clear();
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (std::size_t bin = 0; bin < hosts[host].bins().size(); ++bin) {
      Candidate candidate = berth::policies::consider(hosts[host], host, bin, request);
      if (candidate.lack == Lack::nothing) fitting.push_back(std::move(candidate));
    }
  }
  const auto first = [&](const Candidate& a, const Candidate& b) {
    return comes_first(strategy, hosts, a, b);
  };
  for (; !fitting.empty(); fitting.pop_back()) {
    std::swap(*std::min_element(fitting.begin(), fitting.end(), first), fitting.back());
    const Candidate& candidate = fitting.back();
    Host& host = hosts[candidate.host];
    const auto choice =
        berth::policies::choose_vcpus(host, berth::policies::bin_of(host, candidate), request);
    if (choice.cpus.empty()) continue;
    host.take(berth::policies::spot_of(host, candidate, choice.cpus), request);
    return true;
  }
  return false;
}

// `hosts`: as they are before the stream.
Outcome run(Strategy strategy, const Stream& stream, std::vector<Host> hosts) {
  Outcome outcome;
  std::vector<Candidate> fitting;
  for (const model::PendingWorkload& request : stream.requests) {
    if (!place(strategy, hosts, request, fitting)) continue;
    (request.gpus > 0 ? outcome.gpu_requests : outcome.cpu_requests) += 1;
    outcome.gpus += request.gpus;
  }
  model::PendingWorkload least = testing::request(1, 0, 1);
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (std::size_t bin = 0; bin < hosts[host].bins().size(); ++bin) {
      const auto& gpus = hosts[host].bins()[bin].gpus;
      const auto idle = std::count_if(gpus.begin(), gpus.end(), [](const auto& gpu) { return gpu.idle(); });
      outcome.gpus_idle += idle;
      if (berth::policies::consider(hosts[host], host, bin, least).lack != Lack::nothing)
        outcome.fragments += idle;
    }
  }
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  const long streams = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 10000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const double load = argc > 3 ? std::strtod(argv[3], nullptr) : 1;
  PolicySettings settings;
  settings.interference.isolation = model::Isolation::vcpus;
  std::array<Outcome, strategies> totals{};
  std::array<long, strategies> better_than{};
  std::array<long, strategies> worse_than{};
  std::array<long, strategies> worse_in_both{};  // of these: fewer GPUs given out as well
  long gpu_requests = 0;
  for (long i = 0; i < streams; ++i) {
    const Stream stream = draw_stream(seed * 1'000'003 + static_cast<std::uint64_t>(i), load);
    for (const auto& request : stream.requests) gpu_requests += request.gpus > 0 ? 1 : 0;
    std::vector<Host> hosts;
    for (const model::Snapshot& snapshot : stream.hosts) hosts.emplace_back(snapshot, settings);
    Outcome own;
    for (int strategy = 0; strategy < strategies; ++strategy) {
      const auto at = static_cast<std::size_t>(strategy);
      const Outcome outcome = run(static_cast<Strategy>(strategy), stream, hosts);
      if (strategy == berth_own) own = outcome;
      better_than[at] += own.gpu_requests > outcome.gpu_requests ? 1 : 0;
      const bool worse = own.gpu_requests < outcome.gpu_requests;
      worse_than[at] += worse ? 1 : 0;
      worse_in_both[at] += worse && own.gpus < outcome.gpus ? 1 : 0;
      totals[at].gpu_requests += outcome.gpu_requests;
      totals[at].gpus += outcome.gpus;
      totals[at].cpu_requests += outcome.cpu_requests;
      totals[at].gpus_idle += outcome.gpus_idle;
      totals[at].fragments += outcome.fragments;
    }
  }
  std::printf("%ld streams, seed %llu, load %.3g, %ld GPU requests\n", streams,
              static_cast<unsigned long long>(seed), load, gpu_requests);
  std::printf("%-10s %12s %9s %12s %9s %9s %12s %12s %13s\n", "", "GPU requests", "GPUs", "CPU requests",
              "idle", "fragments", "berth better", "berth worse", "worse in both");
  for (std::size_t at = 0; at < strategies; ++at) {
    const Outcome& total = totals[at];
    std::printf("%-10s %12ld %9ld %12ld %9ld %9ld %12ld %12ld %13ld\n", kNames[at], total.gpu_requests,
                total.gpus, total.cpu_requests, total.gpus_idle, total.fragments, better_than[at],
                worse_than[at], worse_in_both[at]);
  }
  return 0;
}
