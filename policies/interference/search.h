// SPDX-License-Identifier: Apache-2.0
// The seam between what must be placed and how a placement is searched for.
#pragma once

#include "model/cpu_set.h"
#include "policies/interference/occupancy.h"
#include "policies/interference/settings.h"

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
};

struct PlacementProblem {
  const Node& node;
  const InterferenceSettings& settings;
  BestEffortDemand best_effort;
  std::vector<PlacementRequest> requests;  // in the order in which they are served
  Occupancy standing;                      // tenant i is request i; those whose pin stands are placed
};

struct Placement {
  Occupancy occupancy;               // tenant i is request i
  std::vector<std::string> reasons;  // by request: why there, or why nowhere; empty for those left standing
  std::optional<double> lower_bound;
  std::optional<double> gap;
};

// Where one request is placed best; nowhere where `region` is negative.
struct WindowChoice {
  int region = -1;
  std::vector<int> cpus;  // positions
  std::string reason;     // in words: why there, or why nowhere
};

// The best of a request's windows, beside everybody who is placed, who stays [SJTU]. Pure.
WindowChoice choose_window(const Occupancy& occupancy, const InterferenceSettings& settings,
                           const BestEffortDemand& best_effort, const PlacementRequest& request);

// Pure; owns at most usable - best_effort.min_cpus vCPUs when it started so.
using SearchFunction = Placement (*)(const PlacementProblem&);

// Serves one request after the other, each with the best of its windows; never moves one that stands [SJTU].
Placement search_window(const PlacementProblem& problem);

SearchFunction search_function(Search search);
// As in configuration and findings.
const char* to_string(Search search);
const char* to_string(Weighting weighting);

}  // namespace berth::policies
