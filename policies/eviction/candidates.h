// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/eviction_findings.h"
#include "model/snapshot.h"
#include "policies/eviction/settings.h"

#include <map>
#include <string>
#include <vector>

namespace berth::policies {

// Best-effort workloads in the order of eviction, without the spared ones. Others are never evicted
// (docs/decisions/eviction-order.md).
struct Candidates {
  std::map<std::string, model::SparkAppFigures> apps;           // all that the snapshot has, by id
  std::map<std::string, model::EvictionCandidate> by_workload;  // by id
  std::vector<std::string> order;                               // ids, first victim first
};

enum class Priced {
  all,
  spark,  // only Spark's: a host with a thousand other workloads need not price them while none is evicted
};

// Prices and orders the candidates. `settings.rank` orders either each workload by its own loss, or
// application by application. A driver comes after the executors of its application in any case. A workload
// without a known application costs its CPU seconds used so far. `delta`: see app_figures. Of equals the one
// that frees more goes first, where each is ranked by itself; then by id.
Candidates candidates_of(const model::Snapshot& snapshot, const EvictionSettings& settings, double delta,
                         Priced priced);

}  // namespace berth::policies
