// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "model/spark_findings.h"
#include "policies/spark/settings.h"

namespace berth::policies {

// The sum of the memory of latency-sensitive workloads at each of the last `window` instants with a reading
// of any of them. A workload that was not read at an instant counts as at its last reading. Before its first
// reading it counts as 0, so a new one is a rise.
model::MemoryDemand demand_of(const model::Snapshot& snapshot, int window);

// sd / M while it rises, else 0: the weight of an application's remaining time against its cost.
double delta_of(const model::MemoryDemand& demand);
// Expected growth above the latest use, in bytes: max(0, M + z*sd - latest) while it rises, else 0.
std::uint64_t growth_of(const model::MemoryDemand& demand, double z);

}  // namespace berth::policies
