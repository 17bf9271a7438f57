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

// One by one, executors by what is lost with them, or application by application, as `settings.rank` says; a
// driver after the executors of its application in any case, and what is nobody's by CPU seconds used so far.
// `delta`: see app_figures. Of equals the one that frees more goes first, where each is for itself; then by
// id.
Candidates candidates_of(const model::Snapshot& snapshot, const SparkSettings& settings, double delta,
                         Priced priced);

}  // namespace berth::policies
