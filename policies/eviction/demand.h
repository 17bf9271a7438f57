// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/eviction_findings.h"
#include "model/snapshot.h"
#include "policies/eviction/settings.h"

#include <vector>

namespace berth::policies {

// The readings of the snapshot or, where it has none, the sums of its samples (see demand_of()), at most
// kMostMemoryReadings. Ascending in time.
std::vector<model::MemoryReading> demand_series(const model::Snapshot& snapshot);

// Mean, standard deviation and least-squares line of the sums at these times; both of the same size.
model::MemoryDemand figures_of(const std::vector<double>& times, const std::vector<double>& sums);

// The sum of the memory of latency-sensitive workloads at each of the last `window` instants with a reading
// of any of them. A workload that was not read at an instant counts as at its last reading. Before its first
// reading it counts as 0, so a new one is a rise.
model::MemoryDemand demand_of(const model::Snapshot& snapshot, int window);

// sd / M while it rises, else 0.
double delta_of(const model::MemoryDemand& demand);
// delta_of() the snapshot's demand, times the setting's weight: the weight of an application's remaining time
// against its cost.
double weighted_delta(const model::Snapshot& snapshot, const EvictionSettings& settings);
// Expected growth above the latest use, in bytes: max(0, M + z*sd - latest) while it rises, else 0.
std::uint64_t growth_of(const model::MemoryDemand& demand, double z);

}  // namespace berth::policies
