// SPDX-License-Identifier: Apache-2.0
#include "policies/placement/rank.h"

#include "policies/placement/candidate.h"
#include "policies/placement/rise.h"
#include "policies/placement/vcpus.h"
#include "policies/placement/wide.h"

#include <algorithm>
#include <functional>
#include <iterator>
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
  const Bin& bin = bin_of(host, candidate);
  model::FittingBin fitting{.host = host.name(),
                            .numa = bin.numa,
                            .numa_nodes = candidate.set ? bin.nodes : model::CpuSet(),
                            .cpus = choice.cpus,
                            .gpus = {},
                            .gpu_links = candidate.linkage.pairs,
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

// The bins of one host for a request.
struct Judged {
  std::vector<Placed> placed;                                    // those that hold it, best first
  std::vector<Candidate> lacking;                                // by their figures
  std::vector<std::pair<Candidate, std::string>> without_vcpus;  // with the reason
};

// Sorts candidates that fit by their figures into those that have vCPUs for the request, and the others.
void place(std::vector<Candidate> fitting, const model::PendingWorkload& request, std::span<const Host> hosts,
           Judged& judged) {
  for (Candidate& candidate : fitting) {
    const Host& host = hosts[candidate.host];
    VcpuChoice choice = choose_vcpus(host, bin_of(host, candidate), request);
    if (choice.cpus.empty()) {
      judged.without_vcpus.emplace_back(std::move(candidate), std::move(choice.reason));
      continue;
    }
    const auto rise = rise_of(host, request, choice.cpus);
    if (rise) order_by_rise(candidate, request, rise->after - rise->before);
    judged.placed.push_back({.candidate = std::move(candidate), .choice = std::move(choice), .rise = rise});
  }
  std::sort(judged.placed.begin(), judged.placed.end(),
            [&](const Placed& a, const Placed& b) { return better(hosts, a.candidate, b.candidate); });
}

// A set of nodes, for a host where no single one holds the request: the best of the smallest, or all of them
// with their lack.
void place_wide(std::span<const Host> hosts, std::size_t host, const model::PendingWorkload& request,
                Judged& judged) {
  Judged sets;
  place(smallest_sets(hosts[host], host, request), request, hosts, sets);
  if (!sets.placed.empty()) {
    judged.placed.push_back(std::move(sets.placed.front()));
    return;
  }
  auto all = all_nodes(hosts[host], host, request);
  if (!all) return;
  if (all->lack != Lack::nothing) {
    judged.lacking.push_back(*std::move(all));
    return;
  }
  std::string reason = choose_vcpus(hosts[host], *all->set, request).reason;
  judged.without_vcpus.emplace_back(*std::move(all), std::move(reason));
}

Judged judge(std::span<const Host> hosts, std::size_t host, const model::PendingWorkload& request) {
  Judged judged;
  std::vector<Candidate> fitting;
  for (std::size_t bin = 0; bin < hosts[host].bins().size(); ++bin) {
    Candidate candidate = consider(hosts[host], host, bin, request);
    auto& list = candidate.lack == Lack::nothing ? fitting : judged.lacking;
    list.push_back(std::move(candidate));
  }
  place(std::move(fitting), request, hosts, judged);
  if (auto told = told_set(hosts[host], host, request)) {
    Judged set;
    place({*std::move(told)}, request, hosts, set);
    // The place that was told is the best one.
    judged.placed.insert(judged.placed.begin(), set.placed.begin(), set.placed.end());
  }
  if (judged.placed.empty()) place_wide(hosts, host, request, judged);
  return judged;
}

model::RejectedBin rejected_bin(const Host& host, const Candidate& candidate, std::string reason) {
  const Bin& bin = bin_of(host, candidate);
  return {.host = host.name(),
          .numa = bin.numa,
          .numa_nodes = candidate.set ? bin.nodes : model::CpuSet(),
          .reason = std::move(reason)};
}

void describe_rejected(const Host& host, const model::PendingWorkload& request, const Judged& judged,
                       std::vector<model::RejectedBin>& rejected) {
  for (const auto& [candidate, reason] : judged.without_vcpus)
    rejected.push_back(rejected_bin(host, candidate, reason));
  for (const Candidate& candidate : judged.lacking)
    rejected.push_back(rejected_bin(host, candidate, describe_lack(host, candidate, request)));
}

// By host, single nodes first.
void sort_rejected(std::vector<model::RejectedBin>& rejected) {
  std::sort(rejected.begin(), rejected.end(), [](const auto& a, const auto& b) {
    return std::make_tuple(std::cref(a.host), !a.numa_nodes.empty(), a.numa) <
           std::make_tuple(std::cref(b.host), !b.numa_nodes.empty(), b.numa);
  });
}

// "fits in no NUMA node: node 0: ...; node 1: ...; nodes 0-1: ..."
std::string rejection_of(const std::vector<model::RejectedBin>& rejected) {
  std::string text = "fits in no NUMA node";
  const char* separator = ": ";
  for (const model::RejectedBin& bin : rejected) {
    const model::CpuSet nodes = model::nodes_of(bin);
    text += fmt::format("{}node{} {}: {}", separator, nodes.size() == 1 ? "" : "s", nodes.to_string(),
                        bin.reason);
    separator = "; ";
  }
  return text;
}

}  // namespace

model::BinRanking rank_bins(const model::PendingWorkload& request, std::span<const Host> hosts) {
  model::BinRanking ranking;
  std::vector<Placed> placed;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    Judged judged = judge(hosts, host, request);
    std::move(judged.placed.begin(), judged.placed.end(), std::back_inserter(placed));
    describe_rejected(hosts[host], request, judged, ranking.rejected);
  }
  std::sort(placed.begin(), placed.end(),
            [&](const Placed& a, const Placed& b) { return better(hosts, a.candidate, b.candidate); });
  for (const Placed& it : placed)
    ranking.fitting.push_back(fitting_bin(hosts[it.candidate.host], request, it));
  sort_rejected(ranking.rejected);
  return ranking;
}

HostPlace best_place(const model::PendingWorkload& request, const Host& host) {
  Judged judged = judge(std::span<const Host>(&host, 1), 0, request);
  if (!judged.placed.empty()) {
    const auto& [candidate, choice, rise] = judged.placed.front();
    return {.best = HostPlace::Best{.order = candidate.order, .spot = spot_of(host, candidate, choice.cpus)},
            .rejection = {}};
  }
  std::vector<model::RejectedBin> rejected;
  describe_rejected(host, request, judged, rejected);
  sort_rejected(rejected);
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
      host.take({.nodes = model::nodes_of(best), .cpus = best.cpus, .gpus = best.gpus}, newcomer);
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
