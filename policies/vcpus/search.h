// SPDX-License-Identifier: Apache-2.0
// The interface between the requests for places and the search for them.
#pragma once

#include "model/cpu_set.h"
#include "policies/settings.h"
#include "policies/vcpus/occupancy.h"

#include <optional>
#include <string>
#include <vector>

namespace berth::policies {

// One latency-sensitive instance that wants vCPUs of its own.
struct PlacementRequest {
  int vcpus = 0;
  double pressure = 0;
  model::InterferenceModel model;
  std::optional<model::CpuSet> allowed;  // nullopt: anywhere
  // It goes here as long as it fits here, and elsewhere if not; nullopt: no place is better.
  std::optional<model::CpuSet> preferred = std::nullopt;
  model::CpuSet told = {};   // the vCPUs that its admission told; keep_promises() places it there
  bool pending = false;      // it does not run yet
  bool whole_cores = false;  // it gets whole cores, with `vcpus` at least
  bool may_move = false;     // its pin stands, and may be exchanged for a better place
};

struct PlacementProblem {
  const Node& node;
  const InterferenceSettings& settings;
  BestEffortDemand best_effort;
  std::vector<PlacementRequest> requests;  // in the order of serving
  Occupancy standing;                      // tenant i is request i; those whose pin stands are placed
};

struct Placement {
  Occupancy occupancy;               // tenant i is request i
  std::vector<std::string> reasons;  // by request, for its place or for none; empty for those left standing
  std::optional<double> lower_bound;
  std::optional<double> gap;
  std::string summary;     // in words: how good the placement is, and why no more moves; may be empty
  std::vector<int> moved;  // requests whose pin stood and is exchanged, ascending
};

// The best place for one request; none where `region` is negative.
struct WindowChoice {
  int region = -1;
  std::vector<int> cpus;  // positions
  std::string reason;     // in words: the reason for the place, or for none
};

// The best of a request's windows, beside all placed tenants, which keep their places [SJTU]. On a hybrid
// processor it has cores of one kind: that with the most capacity that has room. Pure.
WindowChoice choose_window(const Occupancy& occupancy, const InterferenceSettings& settings,
                           const BestEffortDemand& best_effort, const PlacementRequest& request);

// The same for whole cores, in one of these regions.
WindowChoice choose_cores(const Occupancy& occupancy, const InterferenceSettings& settings,
                          const BestEffortDemand& best_effort, const PlacementRequest& request,
                          const std::vector<int>& regions);

// Pure. The placement owns at most usable - best_effort.min_cpus vCPUs if it began within that limit.
using SearchFunction = Placement (*)(const PlacementProblem&);

// Serves one request after the other, each with the best of its windows. Never moves a standing one [SJTU].
Placement search_window(const PlacementProblem& problem);

// Minimises score_node over the places of all new instances together. Standing ones that may move do so where
// that lowers score_node by min_gain (docs/decisions/pinning.md, optimal search).
Placement search_optimal(const PlacementProblem& problem);

SearchFunction search_function(Search search);
// As in configuration and findings.
const char* to_string(Search search);
const char* to_string(Weighting weighting);

}  // namespace berth::policies
