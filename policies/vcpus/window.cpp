// SPDX-License-Identifier: Apache-2.0
#include "model/count_text.h"
#include "policies/vcpus/candidate_score.h"
#include "policies/vcpus/search.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

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

// The request that needs a place, and the state of the node.
struct WindowSearch {
  const Occupancy& occupancy;
  const InterferenceSettings& settings;
  const BestEffortDemand& best_effort;
  const PlacementRequest& request;
  const Tenant& newcomer;

  const Node& node() const { return occupancy.node(); }
};

std::vector<int> free_window(const WindowSearch& search, int region) {
  const Node& node = search.node();
  const auto& allowed = search.request.allowed;
  std::vector<int> free;
  for (const int position : node.region(region).window) {
    const int cpu = node.cpu(position);
    if (search.occupancy.owner(position) >= 0 || search.settings.reserved_cpus.contains(cpu)) continue;
    if (allowed && !allowed->contains(cpu)) continue;
    free.push_back(position);
  }
  return free;
}

RegionResult search_region(const WindowSearch& search, int region) {
  const std::vector<int> free = free_window(search, region);
  const std::ptrdiff_t width = search.request.vcpus;
  const std::ptrdiff_t step = std::max(1, search.settings.window_step);
  RegionResult result{.free = static_cast<int>(free.size()), .candidates = 0, .best = {}, .second = {}};
  if (std::ssize(free) < width) return result;

  const auto scorer =
      make_scorer(search.occupancy, search.settings.weighting, search.best_effort, search.newcomer, region);
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

std::string describe(const WindowSearch& search, const Choice& choice) {
  const Node& node = search.node();
  const auto place = [&](const Candidate& candidate) {
    return fmt::format("{} of {}", node.cpu_set(candidate.cpus).to_string(),
                       node.region(candidate.region).name);
  };
  std::string text = fmt::format("placed on {}: score_domain {:.4g}", place(choice.best), choice.best.score);
  if (choice.rival) text += fmt::format(" against {:.4g} on {}", choice.rival->score, place(*choice.rival));
  return text + fmt::format(" ({}, weighting {})", model::count_text(choice.candidates, "candidate"),
                            to_string(search.settings.weighting));
}

std::string nothing_free(const WindowSearch& search, const std::vector<int>& regions,
                         const std::vector<RegionResult>& results) {
  std::size_t most = 0;
  for (std::size_t i = 1; i < results.size(); ++i) {
    if (results[i].free > results[most].free) most = i;
  }
  const PlacementRequest& wanted = search.request;
  const Region& region = search.node().region(regions[most]);
  return fmt::format("asks {} in one domain; {} has the most free, {} of {}{}",
                     model::count_text(wanted.vcpus, "vCPU"), region.name, results[most].free,
                     region.window.size(),
                     wanted.allowed ? fmt::format(" (of vCPUs {})", wanted.allowed->to_string()) : "");
}

// "2 of 4 free on vCPUs 0-3, 8 of 8 free on vCPUs 4-11", most capacity first.
std::string free_by_kind(const Occupancy& occupancy) {
  const Node& node = occupancy.node();
  std::string text;
  for (int kind = 0; kind < node.kind_count(); ++kind) {
    int usable = 0;
    int free = 0;
    for (int position = 0; position < node.size(); ++position) {
      if (node.kind(position) != kind) continue;
      usable += node.usable(position) ? 1 : 0;
      free += occupancy.unowned(position) ? 1 : 0;
    }
    text += fmt::format("{}{} of {} are unowned on vCPUs {}", kind == 0 ? "" : ", ", free, usable,
                        node.kind_cpus(kind).to_string());
  }
  return text;
}

WindowChoice nowhere(std::string reason) { return {.region = -1, .cpus = {}, .reason = std::move(reason)}; }

// The best window on cores of one kind: of the kind with the most capacity that has any.
WindowChoice choose_kind(const Occupancy& occupancy, const InterferenceSettings& settings,
                         const BestEffortDemand& best_effort, const PlacementRequest& request) {
  const Node& node = occupancy.node();
  std::string first;
  for (int kind = 0; kind < node.kind_count(); ++kind) {
    PlacementRequest of_kind = request;
    of_kind.allowed = request.allowed ? *request.allowed & node.kind_cpus(kind) : node.kind_cpus(kind);
    if (of_kind.allowed->empty()) continue;
    WindowChoice choice = choose_window(occupancy, settings, best_effort, of_kind);
    if (choice.region < 0) {
      if (first.empty()) first = std::move(choice.reason);
      continue;
    }
    choice.reason += fmt::format("; cores of kind {} of {} by capacity", kind + 1, node.kind_count());
    return choice;
  }
  if (first.empty()) return nowhere("none of its allowed CPUs is online");
  return nowhere(
      fmt::format("{}; an instance has cores of one kind, and {}", first, free_by_kind(occupancy)));
}

}  // namespace

WindowChoice choose_window(const Occupancy& occupancy, const InterferenceSettings& settings,
                           const BestEffortDemand& best_effort, const PlacementRequest& request) {
  const bool any_kind = occupancy.node().kind_count() > 1 &&
                        !(request.allowed && occupancy.node().kind_of(*request.allowed) >= 0);
  if (any_kind) return choose_kind(occupancy, settings, best_effort, request);
  if (request.preferred) {
    PlacementRequest near = request;
    near.allowed = request.allowed ? *request.allowed & *request.preferred : *request.preferred;
    near.preferred.reset();
    WindowChoice choice = choose_window(occupancy, settings, best_effort, near);
    if (choice.region >= 0) return choice;
  }
  const Node& node = occupancy.node();
  const int vcpus = request.vcpus;
  if (vcpus <= 0) return nowhere(fmt::format("asks {} vCPUs; a pin needs at least 1", vcpus));
  const auto regions = node.regions_for(vcpus, settings.allow_cross_socket);
  if (!regions) return nowhere(regions.error().message());
  if (request.whole_cores) return choose_cores(occupancy, settings, best_effort, request, *regions);
  if (occupancy.unowned_count() - vcpus < best_effort.min_cpus) {
    return nowhere(fmt::format("asks {}; {} of {} are unowned, and {} must stay so (be_min_cpus)",
                               model::count_text(vcpus, "vCPU"), occupancy.unowned_count(),
                               node.usable_count(), best_effort.min_cpus));
  }
  const Tenant newcomer{
      .vcpus = vcpus, .pressure = request.pressure, .model = request.model, .region = -1, .cpus = {}};
  const WindowSearch search{.occupancy = occupancy,
                            .settings = settings,
                            .best_effort = best_effort,
                            .request = request,
                            .newcomer = newcomer};
  std::vector<RegionResult> results;
  for (const int region : *regions) results.push_back(search_region(search, region));
  if (std::none_of(results.begin(), results.end(),
                   [](const RegionResult& it) { return it.best.has_value(); })) {
    return nowhere(nothing_free(search, *regions, results));
  }
  Choice choice = choose(results);
  std::string reason = describe(search, choice);
  return {.region = choice.best.region, .cpus = std::move(choice.best.cpus), .reason = std::move(reason)};
}

Placement search_window(const PlacementProblem& problem) {
  Placement result{.occupancy = problem.standing,
                   .reasons = std::vector<std::string>(problem.requests.size()),
                   .lower_bound = {},
                   .gap = {},
                   .summary = {},
                   .moved = {}};
  for (int request = 0; request < static_cast<int>(problem.requests.size()); ++request) {
    if (result.occupancy.placed(request)) continue;
    WindowChoice choice =
        choose_window(result.occupancy, problem.settings, problem.best_effort, problem.requests[request]);
    result.reasons[request] = std::move(choice.reason);
    if (choice.region >= 0) result.occupancy.place(request, choice.region, std::move(choice.cpus));
  }
  return result;
}

}  // namespace berth::policies
