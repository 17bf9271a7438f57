// SPDX-License-Identifier: Apache-2.0
// The interference policy with the window search, written again word by word after docs/decisions/pinning.md,
// with sets and loops and no care for time. It uses nothing of policies/ but the settings, and of the
// topology only the list of vCPUs.
#pragma once

#include "model/snapshot.h"
#include "policies/interference/settings.h"

#include <map>
#include <optional>
#include <set>
#include <string>

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

}  // namespace berth::policies::naive
