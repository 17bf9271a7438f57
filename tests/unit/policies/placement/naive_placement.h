// SPDX-License-Identifier: Apache-2.0
// Placement, written again after docs/decisions/placement.md, with sets and loops and no care
// for time: of NUMA nodes it tries every set. The vCPUs come from the naive version of the interference
// policy.
#pragma once

#include "model/snapshot.h"
#include "policies/settings.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace berth::policies::naive {

struct Place {
  std::string host;
  std::set<int> nodes;  // one, or a set where no single one holds the request
  std::set<int> cpus;
  std::vector<std::string> gpus;
  double links = 0;  // sum of the distances between these GPUs
  double cpu_left = 0;
  double memory_left = 0;
  double rise = 0;  // of the host's score
  // A figure that it is ranked by lies between two billionths, where the last bit decides which one it counts
  // as.
  bool between = false;
};

struct Places {
  std::vector<Place> fitting;                      // best first
  std::set<std::pair<std::string, int>> rejected;  // host, single NUMA node
  // Rounding may decide between two bins. Bins of a host are often alike, so that can happen.
  bool close = false;
};

// Whether the links of GPUs count; without, the rules are those for hosts that know no link.
enum class Links { count, ignored };

// For snapshots without pending work.
Places rank(const model::PendingWorkload& request, const std::vector<model::Snapshot>& hosts,
            const PolicySettings& settings, Links links = Links::count);

}  // namespace berth::policies::naive
