// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/rank.h"

#include "policies/placement/candidate.h"
#include "policies/placement/rise.h"
#include "policies/placement/vcpus.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

// A candidate that has its vCPUs.
struct Placed {
  Candidate candidate;
  VcpuChoice choice;
  std::optional<Rise> rise;
};

model::FittingBin fitting_bin(const Host& host, const model::PendingWorkload& request, const Placed& placed) {
  const auto& [candidate, choice, rise] = placed;
  const Bin& bin = host.bins()[candidate.bin];
  model::FittingBin fitting{.host = host.name(),
                            .numa = bin.numa,
                            .cpus = choice.cpus,
                            .gpus = {},
                            .cpu_left_cores = candidate.cpu_left,
                            .memory_left_bytes = candidate.memory_left,
                            .free_share = candidate.free_share,
                            .gpus_total = static_cast<int>(bin.gpus.size()),
                            .gpus_left = candidate.gpus_left,
                            .gpu_memory_left_bytes = candidate.gpu_memory_left,
                            .score_before = {},
                            .score_after = {},
                            .rise = {},
                            .reason = describe_place(host, candidate, request) + "; " + choice.reason};
  if (rise) {
    fitting.score_before = rise->before;
    fitting.score_after = rise->after;
    fitting.rise = rise->after - rise->before;
    fitting.reason +=
        fmt::format("; score_node of the host {:.4g}, {:.4g} with it", rise->before, rise->after);
    if (host.has_instance_of(request.service)) fitting.reason += "; an instance of its service is there";
  }
  for (const std::size_t index : candidate.gpus) fitting.gpus.push_back(bin.gpus[index].id);
  return fitting;
}

// The candidates that fit by their figures, and the rest.
std::pair<std::vector<Candidate>, std::vector<Candidate>> candidates_of(
    std::span<const Host> hosts, const model::PendingWorkload& request) {
  std::vector<Candidate> fitting;
  std::vector<Candidate> lacking;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (std::size_t bin = 0; bin < hosts[host].bins().size(); ++bin) {
      Candidate candidate = consider(hosts[host], host, bin, request);
      auto& list = candidate.lack == Lack::nothing ? fitting : lacking;
      list.push_back(std::move(candidate));
    }
  }
  return {std::move(fitting), std::move(lacking)};
}

// Those with vCPUs, best first. Calls reject(candidate, reason) for the others.
template <typename Reject>
std::vector<Placed> place(std::vector<Candidate> fitting, const model::PendingWorkload& request,
                          std::span<const Host> hosts, Reject reject) {
  std::vector<Placed> placed;
  for (Candidate& candidate : fitting) {
    const Host& host = hosts[candidate.host];
    VcpuChoice choice = choose_vcpus(host, candidate.bin, request);
    if (choice.cpus.empty()) {
      reject(candidate, std::move(choice.reason));
      continue;
    }
    const auto rise = rise_of(host, request, choice.cpus);
    if (rise) order_by_rise(candidate, request, rise->after - rise->before);
    placed.push_back({.candidate = std::move(candidate), .choice = std::move(choice), .rise = rise});
  }
  std::sort(placed.begin(), placed.end(),
            [&](const Placed& a, const Placed& b) { return better(hosts, a.candidate, b.candidate); });
  return placed;
}

// "fits in no NUMA node: node 0: ...; node 1: ..."
std::string rejection_of(const std::vector<model::RejectedBin>& rejected) {
  std::string text = "fits in no NUMA node";
  const char* separator = ": ";
  for (const model::RejectedBin& bin : rejected) {
    text += fmt::format("{}node {}: {}", separator, bin.numa, bin.reason);
    separator = "; ";
  }
  return text;
}

}  // namespace

model::BinRanking rank_bins(const model::PendingWorkload& request, std::span<const Host> hosts) {
  model::BinRanking ranking;
  const auto reject = [&](const Candidate& candidate, std::string reason) {
    const Host& host = hosts[candidate.host];
    ranking.rejected.push_back(
        {.host = host.name(), .numa = host.bins()[candidate.bin].numa, .reason = std::move(reason)});
  };
  auto [fitting, lacking] = candidates_of(hosts, request);
  for (const Placed& it : place(std::move(fitting), request, hosts, reject)) {
    const Host& host = hosts[it.candidate.host];
    ranking.fitting.push_back(fitting_bin(host, request, it));
  }
  for (const Candidate& candidate : lacking)
    reject(candidate, describe_lack(hosts[candidate.host], candidate, request));
  std::sort(ranking.rejected.begin(), ranking.rejected.end(),
            [](const auto& a, const auto& b) { return std::tie(a.host, a.numa) < std::tie(b.host, b.numa); });
  return ranking;
}

HostPlace best_place(const model::PendingWorkload& request, const Host& host) {
  const std::span<const Host> alone(&host, 1);
  std::vector<model::RejectedBin> rejected;
  const auto reject = [&](const Candidate& candidate, std::string reason) {
    rejected.push_back(
        {.host = host.name(), .numa = host.bins()[candidate.bin].numa, .reason = std::move(reason)});
  };
  auto [fitting, lacking] = candidates_of(alone, request);
  std::vector<Placed> placed = place(std::move(fitting), request, alone, reject);
  if (!placed.empty()) {
    auto& [candidate, choice, rise] = placed.front();
    return {.best = HostPlace::Best{.order = candidate.order,
                                    .bin = candidate.bin,
                                    .cpus = std::move(choice.cpus),
                                    .gpus = std::move(candidate.gpus)},
            .rejection = {}};
  }
  for (const Candidate& candidate : lacking) reject(candidate, describe_lack(host, candidate, request));
  std::sort(rejected.begin(), rejected.end(), [](const auto& a, const auto& b) { return a.numa < b.numa; });
  return {.best = {}, .rejection = rejection_of(rejected)};
}

std::map<std::string, model::BinRanking> take_best(Host& host,
                                                   const std::vector<model::PendingWorkload>& pending) {
  std::map<std::string, model::BinRanking> rankings;
  for (const model::PendingWorkload& newcomer : pending) host.promise(newcomer);
  for (const model::PendingWorkload& newcomer : pending) {
    model::BinRanking ranking = rank_bins(newcomer, std::span<const Host>(&host, 1));
    if (!ranking.fitting.empty()) {
      const model::FittingBin& best = ranking.fitting.front();
      const auto bin = std::find_if(host.bins().begin(), host.bins().end(),
                                    [&](const Bin& candidate) { return candidate.numa == best.numa; });
      std::vector<std::size_t> gpus;
      for (std::size_t index = 0; index < bin->gpus.size(); ++index) {
        if (std::find(best.gpus.begin(), best.gpus.end(), bin->gpus[index].id) != best.gpus.end())
          gpus.push_back(index);
      }
      host.take(static_cast<std::size_t>(bin - host.bins().begin()), newcomer, best.cpus, gpus);
    }
    rankings.emplace(newcomer.id, std::move(ranking));
  }
  return rankings;
}

void take_promised(Host& host, const std::vector<model::PendingWorkload>& awaited) {
  const auto places = take_best(host, awaited);
  for (const model::PendingWorkload& newcomer : awaited) {
    if (places.at(newcomer.id).fitting.empty()) host.claim(newcomer);
  }
}

PlacementProposal propose_places(const model::Snapshot& snapshot, const PolicySettings& settings) {
  PlacementProposal proposal;
  if (snapshot.pending.empty()) return proposal;
  Host host(snapshot, settings);
  proposal.findings.pending = take_best(host, snapshot.pending);
  for (const auto& [id, ranking] : proposal.findings.pending) {
    if (ranking.fitting.empty()) {
      proposal.bins.emplace(id, PendingBin{.cpus = {}, .rejection = rejection_of(ranking.rejected)});
      continue;
    }
    proposal.bins.emplace(id, PendingBin{.cpus = ranking.fitting.front().cpus, .rejection = {}});
  }
  return proposal;
}

}  // namespace berth::policies
