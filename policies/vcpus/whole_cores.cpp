// SPDX-License-Identifier: Apache-2.0
#include "model/count_text.h"
#include "policies/vcpus/candidate_score.h"
#include "policies/vcpus/search.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

struct FreeCores {
  std::vector<std::vector<int>> cores;  // the usable threads of each, ascending by its first
  int vcpus = 0;
};

// The cores of which the request may have every usable thread. None of a core with a reserved one.
FreeCores free_cores(const Occupancy& occupancy, const InterferenceSettings& settings,
                     const PlacementRequest& request, int region) {
  const Node& node = occupancy.node();
  const auto may_have = [&](int position) {
    const int cpu = node.cpu(position);
    return occupancy.owner(position) < 0 && !settings.reserved_cpus.contains(cpu) &&
           (!request.allowed || request.allowed->contains(cpu));
  };
  FreeCores free;
  for (const int position : node.region(region).cpus) {
    const std::vector<int>& all = node.core_threads(node.core(position));
    std::vector<int> threads;
    std::copy_if(all.begin(), all.end(), std::back_inserter(threads),
                 [&](int at) { return node.usable(at) || node.reserved().contains(node.cpu(at)); });
    if (threads.empty() || threads.front() != position) continue;
    if (!std::all_of(threads.begin(), threads.end(), may_have)) continue;
    free.vcpus += static_cast<int>(threads.size());
    free.cores.push_back(std::move(threads));
  }
  return free;
}

// Scores windows of whole cores, which may differ in their number of vCPUs.
class Scorers {
 public:
  Scorers(const Occupancy& occupancy, const InterferenceSettings& settings,
          const BestEffortDemand& best_effort, const PlacementRequest& request, int region)
      : occupancy_(occupancy),
        settings_(settings),
        best_effort_(best_effort),
        request_(request),
        region_(region) {}

  double score(const std::vector<int>& cpus) {
    const auto [known, fresh] = by_size_.try_emplace(cpus.size());
    One& one = known->second;
    if (fresh) {
      one.tenant = std::make_unique<Tenant>(Tenant{.vcpus = static_cast<int>(cpus.size()),
                                                   .pressure = request_.pressure,
                                                   .model = request_.model,
                                                   .region = -1,
                                                   .cpus = {}});
      one.scorer = make_scorer(occupancy_, settings_.weighting, best_effort_, *one.tenant, region_);
    }
    return one.scorer->score(cpus);
  }

 private:
  struct One {
    std::unique_ptr<Tenant> tenant;
    std::unique_ptr<CandidateScorer> scorer;
  };

  const Occupancy& occupancy_;
  const InterferenceSettings& settings_;
  const BestEffortDemand& best_effort_;
  const PlacementRequest& request_;
  int region_;
  std::map<std::size_t, One> by_size_;
};

// The vCPUs of the next free cores from `first` on that hold the request, without cores that it does not
// need; empty if there are too few.
std::vector<int> window_from(const FreeCores& free, std::size_t first, int vcpus) {
  std::vector<std::vector<int>> cores;
  int held = 0;
  for (std::size_t core = first; core < free.cores.size() && held < vcpus; ++core) {
    held += static_cast<int>(free.cores[core].size());
    cores.push_back(free.cores[core]);
  }
  if (held < vcpus) return {};
  std::vector<int> cpus;
  for (const std::vector<int>& core : cores) {
    const int threads = static_cast<int>(core.size());
    if (held - threads >= vcpus) {
      held -= threads;
    } else {
      cpus.insert(cpus.end(), core.begin(), core.end());
    }
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

}  // namespace

WindowChoice choose_cores(const Occupancy& occupancy, const InterferenceSettings& settings,
                          const BestEffortDemand& best_effort, const PlacementRequest& request,
                          const std::vector<int>& regions) {
  const Node& node = occupancy.node();
  WindowChoice best;
  double least = 0;
  int candidates = 0;
  int most_free = -1;
  for (const int region : regions) {
    const FreeCores free = free_cores(occupancy, settings, request, region);
    if (most_free < 0 || free.vcpus > most_free) {
      most_free = free.vcpus;
      best.reason = fmt::format("asks whole cores with {} in one domain; {} has the most free, with {} of {}",
                                model::count_text(request.vcpus, "vCPU"), node.region(region).name,
                                free.vcpus, node.region(region).window.size());
    }
    Scorers scorers(occupancy, settings, best_effort, request, region);
    for (std::size_t first = 0; first < free.cores.size(); ++first) {
      std::vector<int> cpus = window_from(free, first, request.vcpus);
      if (cpus.empty()) break;
      if (occupancy.unowned_count() - std::ssize(cpus) < best_effort.min_cpus) continue;
      const double score = scorers.score(cpus);
      ++candidates;
      if (best.region >= 0 && score >= least - kTie) continue;
      least = score;
      best.region = region;
      best.cpus = std::move(cpus);
    }
  }
  if (best.region >= 0) {
    best.reason = fmt::format("placed on the whole cores of {} of {}: score_domain {:.4g} ({}, weighting {})",
                              node.cpu_set(best.cpus).to_string(), node.region(best.region).name, least,
                              model::count_text(candidates, "candidate"), to_string(settings.weighting));
  } else if (most_free >= request.vcpus) {
    best.reason =
        fmt::format("asks whole cores with {}; {} of {} vCPUs are unowned, and {} must stay so (be_min_cpus)",
                    model::count_text(request.vcpus, "vCPU"), occupancy.unowned_count(), node.usable_count(),
                    best_effort.min_cpus);
  }
  return best;
}

}  // namespace berth::policies
