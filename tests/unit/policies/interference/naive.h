// SPDX-License-Identifier: Apache-2.0
// The interference policy with the window search, written again after docs/decisions/pinning.md,
// with sets and loops and no care for time. It uses nothing of policies/ but the settings, and of the
// topology only the list of vCPUs.
#pragma once

#include "model/snapshot.h"
#include "policies/interference/settings.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::policies::naive {

using Cpus = std::set<int>;

struct Score {
  double cpu_sc = 0;
  double cpu_ss = 0;
  double score = 0;
};

struct Outcome {
  std::map<std::string, Cpus> placed;   // by workload or pending id
  std::map<std::string, Score> scores;  // of those placed
  std::set<std::string> unplaceable;
  std::map<int, double> domains;
  double node = 0;
  std::optional<double> node_unpinned;
  Cpus pool;
  double pool_utilisation = 0;
};

Outcome place(const model::Snapshot& snapshot, const InterferenceSettings& settings);
// The same, but these instances have these places, whatever their pins. Only the others are served.
Outcome place_beside(const model::Snapshot& snapshot, const InterferenceSettings& settings,
                     const std::map<std::string, Cpus>& given);

// An instance as a search finds it.
struct Request {
  std::string id;
  int asked = 0;
  double u = 0;
  double k1 = 0;
  double k2 = 0;
  bool runs = true;                 // else it is pending
  std::optional<double> pinned_at;  // epoch seconds
  Cpus kept;                        // its pin that stands; empty where it has none
  bool resized = false;             // `kept` is a part of its pin
  Cpus may;                         // the vCPUs that it may have
  std::vector<Cpus> regions;        // it lies in one of these
};
// In the order of serving.
std::vector<Request> requests(const model::Snapshot& snapshot, const InterferenceSettings& settings);

}  // namespace berth::policies::naive
