// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "model/spark_findings.h"
#include "policies/spark/settings.h"

#include <map>
#include <string>
#include <vector>

namespace berth::policies {

// Best-effort workloads, which alone can be evicted, but for those that are spared, in the order of eviction
// (docs/algorithms.md, Spark).
struct Candidates {
  std::map<std::string, model::SparkAppFigures> apps;           // all that the snapshot has, by id
  std::map<std::string, model::EvictionCandidate> by_workload;  // by id
  std::vector<std::string> order;                               // ids, first victim first
};

enum class Priced {
  all,
  spark,  // those that are Spark's alone: a node with a thousand others need not price them while nobody goes
};

// Applications by their cost, those of nobody by CPU seconds used so far; in an application executors before
// drivers, each by its own cost. `delta`: see app_figures. Ties by id.
Candidates candidates_of(const model::Snapshot& snapshot, const SparkSettings& settings, double delta,
                         Priced priced);

}  // namespace berth::policies
