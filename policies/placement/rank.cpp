// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/rank.h"

#include "policies/placement/candidate.h"
#include "policies/placement/vcpus.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

model::FittingBin fitting_bin(const Host& host, const Candidate& candidate,
                              const model::PendingWorkload& request, VcpuChoice choice) {
  const Bin& bin = host.bins()[candidate.bin];
  model::FittingBin fitting{.host = host.name(),
                            .numa = bin.numa,
                            .cpus = std::move(choice.cpus),
                            .gpus = {},
                            .cpu_left_cores = candidate.cpu_left,
                            .memory_left_bytes = candidate.memory_left,
                            .free_share = candidate.free_share,
                            .gpus_total = static_cast<int>(bin.gpus.size()),
                            .gpus_left = candidate.gpus_left,
                            .gpu_memory_left_bytes = candidate.gpu_memory_left,
                            .reason = describe_place(host, candidate, request) + "; " + choice.reason};
  for (const std::size_t index : candidate.gpus) fitting.gpus.push_back(bin.gpus[index].id);
  return fitting;
}

// The candidates that fit, best first, and the rest.
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
  std::sort(fitting.begin(), fitting.end(),
            [&](const Candidate& a, const Candidate& b) { return better(hosts, a, b); });
  return {std::move(fitting), std::move(lacking)};
}

}  // namespace

model::BinRanking rank_bins(const model::PendingWorkload& request, std::span<const Host> hosts) {
  model::BinRanking ranking;
  const auto reject = [&](const Candidate& candidate, std::string reason) {
    const Host& host = hosts[candidate.host];
    ranking.rejected.push_back(
        {.host = host.name(), .numa = host.bins()[candidate.bin].numa, .reason = std::move(reason)});
  };
  const auto [fitting, lacking] = candidates_of(hosts, request);
  for (const Candidate& candidate : fitting) {
    const Host& host = hosts[candidate.host];
    VcpuChoice choice = choose_vcpus(host, candidate.bin, request);
    if (choice.cpus.empty()) {
      reject(candidate, std::move(choice.reason));
    } else {
      ranking.fitting.push_back(fitting_bin(host, candidate, request, std::move(choice)));
    }
  }
  for (const Candidate& candidate : lacking)
    reject(candidate, describe_lack(hosts[candidate.host], candidate, request));
  std::sort(ranking.rejected.begin(), ranking.rejected.end(),
            [](const auto& a, const auto& b) { return std::tie(a.host, a.numa) < std::tie(b.host, b.numa); });
  return ranking;
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

namespace {

std::string rejection_of(const model::BinRanking& ranking) {
  std::string text = "fits in no NUMA node";
  const char* separator = ": ";
  for (const model::RejectedBin& bin : ranking.rejected) {
    text += fmt::format("{}node {}: {}", separator, bin.numa, bin.reason);
    separator = "; ";
  }
  return text;
}

}  // namespace

PlacementProposal propose_places(const model::Snapshot& snapshot, const PolicySettings& settings) {
  PlacementProposal proposal;
  if (snapshot.pending.empty()) return proposal;
  Host host(snapshot, settings);
  proposal.findings.pending = take_best(host, snapshot.pending);
  for (const auto& [id, ranking] : proposal.findings.pending) {
    if (ranking.fitting.empty()) {
      proposal.bins.emplace(id, PendingBin{.cpus = {}, .rejection = rejection_of(ranking)});
      continue;
    }
    const int numa = ranking.fitting.front().numa;
    for (const Bin& bin : host.bins()) {
      if (bin.numa == numa) proposal.bins.emplace(id, PendingBin{.cpus = bin.cpus, .rejection = {}});
    }
  }
  return proposal;
}

}  // namespace berth::policies
