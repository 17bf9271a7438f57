// SPDX-License-Identifier: Apache-2.0
// The Spark policy, written again after docs/decisions/eviction-cost.md and eviction-order.md,
// with maps and loops and no care for time. It uses nothing of policies/ but the settings.
#pragma once

#include "model/snapshot.h"
#include "policies/settings.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace berth::policies::naive {

struct AppWorth {
  double computation = 0;
  double transmission = 0;
  double recalculation = 0;
  double done = 0;
  double remaining = 0;
  double cost = 0;
};

struct Eviction {
  double delta = 0;
  double growth = 0;
  double need = 0;
  std::map<std::string, AppWorth> apps;
  std::map<std::string, double> costs;  // by workload id
  std::vector<std::string> order;
  std::vector<std::string> victims;
  std::map<std::string, double> limits;  // of workloads that are squeezed now, bytes
  std::map<std::string, double> kept;    // and of those that stay squeezed
  // Executors that replace evicted ones.
  std::set<std::string> held;
  std::map<std::string, double> held_cores;
};

Eviction evict(const model::Snapshot& snapshot, const EvictionSettings& settings);

}  // namespace berth::policies::naive
