// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/candidate_score.h"
#include "policies/interference/search.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace berth::policies {

namespace {

struct Candidate {
  int region = -1;
  std::vector<int> cpus;
  double score = 0;
};

// The best candidates of one region.
struct RegionResult {
  int free = 0;  // vCPUs the request could have there
  int candidates = 0;
  std::optional<Candidate> best;
  std::optional<Candidate> second;
};

struct Choice {
  Candidate best;
  std::optional<Candidate> rival;  // of another region if there is one, else the next best of the same
  int candidates = 0;
};

std::vector<int> free_window(const PlacementProblem& problem, const Occupancy& occupancy, int request,
                             int region) {
  const Node& node = problem.node;
  const auto& allowed = problem.requests[request].allowed;
  std::vector<int> free;
  for (const int position : node.region(region).window) {
    const int cpu = node.cpu(position);
    if (occupancy.owner(position) >= 0 || problem.settings.reserved_cpus.contains(cpu)) continue;
    if (allowed && !allowed->contains(cpu)) continue;
    free.push_back(position);
  }
  return free;
}

RegionResult search_region(const PlacementProblem& problem, const Occupancy& occupancy, int request,
                           int region) {
  const std::vector<int> free = free_window(problem, occupancy, request, region);
  const std::ptrdiff_t width = problem.requests[request].vcpus;
  const std::ptrdiff_t step = std::max(1, problem.settings.window_step);
  RegionResult result{.free = static_cast<int>(free.size()), .candidates = 0, .best = {}, .second = {}};
  if (std::ssize(free) < width) return result;

  const auto scorer =
      make_scorer(occupancy, problem.settings.weighting, problem.best_effort, request, region);
  for (std::ptrdiff_t at = 0; at + width <= std::ssize(free); at += step) {
    Candidate candidate{.region = region, .cpus = {free.begin() + at, free.begin() + at + width}, .score = 0};
    candidate.score = scorer->score(candidate.cpus);
    ++result.candidates;
    if (!result.best || candidate.score < result.best->score - kTie) {
      result.second = std::exchange(result.best, std::move(candidate));
    } else if (!result.second || candidate.score < result.second->score - kTie) {
      result.second = std::move(candidate);
    }
  }
  return result;
}

Choice choose(std::vector<RegionResult>& results) {
  RegionResult* home = nullptr;
  for (RegionResult& result : results) {
    if (result.best && (home == nullptr || result.best->score < home->best->score - kTie)) home = &result;
  }
  Choice choice;
  for (RegionResult& result : results) {
    choice.candidates += result.candidates;
    if (&result == home || !result.best) continue;
    if (!choice.rival || result.best->score < choice.rival->score - kTie) choice.rival = result.best;
  }
  if (!choice.rival) choice.rival = std::move(home->second);
  choice.best = std::move(*home->best);
  return choice;
}

std::string describe(const PlacementProblem& problem, const Choice& choice) {
  const Node& node = problem.node;
  const auto place = [&](const Candidate& candidate) {
    return fmt::format("{} of {}", node.cpu_set(candidate.cpus).to_string(),
                       node.region(candidate.region).name);
  };
  std::string text = fmt::format("placed on {}: score_domain {:.4g}", place(choice.best), choice.best.score);
  if (choice.rival) text += fmt::format(" against {:.4g} on {}", choice.rival->score, place(*choice.rival));
  return text + fmt::format(" ({} candidate{}, weighting {})", choice.candidates,
                            choice.candidates == 1 ? "" : "s", to_string(problem.settings.weighting));
}

std::string nothing_free(const PlacementProblem& problem, int request, const std::vector<int>& regions,
                         const std::vector<RegionResult>& results) {
  std::size_t most = 0;
  for (std::size_t i = 1; i < results.size(); ++i) {
    if (results[i].free > results[most].free) most = i;
  }
  const PlacementRequest& wanted = problem.requests[request];
  const Region& region = problem.node.region(regions[most]);
  return fmt::format("asks {} vCPUs in one domain; {} has the most free, {} of {}{}", wanted.vcpus,
                     region.name, results[most].free, region.window.size(),
                     wanted.allowed ? fmt::format(" (allowed CPUs {})", wanted.allowed->to_string()) : "");
}

// Places one request if it can be placed; says what it did.
std::string serve(const PlacementProblem& problem, Occupancy& occupancy, int request) {
  const int vcpus = problem.requests[request].vcpus;
  if (vcpus <= 0) return fmt::format("asks {} vCPUs; a pin needs at least 1", vcpus);
  const auto regions = problem.node.regions_for(vcpus, problem.settings.allow_cross_socket);
  if (!regions) return regions.error().message();
  if (occupancy.unowned_count() - vcpus < problem.best_effort.min_cpus) {
    return fmt::format("asks {} vCPUs; {} of {} are unowned, and {} must stay so (be_min_cpus)", vcpus,
                       occupancy.unowned_count(), problem.node.usable_count(), problem.best_effort.min_cpus);
  }
  std::vector<RegionResult> results;
  for (const int region : *regions) results.push_back(search_region(problem, occupancy, request, region));
  if (std::none_of(results.begin(), results.end(),
                   [](const RegionResult& it) { return it.best.has_value(); })) {
    return nothing_free(problem, request, *regions, results);
  }
  Choice choice = choose(results);
  std::string reason = describe(problem, choice);
  occupancy.place(request, choice.best.region, std::move(choice.best.cpus));
  return reason;
}

}  // namespace

Placement search_window(const PlacementProblem& problem) {
  Placement result{.occupancy = problem.standing,
                   .reasons = std::vector<std::string>(problem.requests.size()),
                   .lower_bound = {},
                   .gap = {}};
  for (int request = 0; request < static_cast<int>(problem.requests.size()); ++request) {
    if (!result.occupancy.placed(request))
      result.reasons[request] = serve(problem, result.occupancy, request);
  }
  return result;
}

}  // namespace berth::policies
