// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"
#include "model/spark_findings.h"
#include "policies/spark/settings.h"

namespace berth::policies {

// The memory that latency-sensitive workloads used in all at each of the last `window` instants that any of
// them was read at. One that was not read at an instant counts as when it was last read, or as nothing
// before it was first: so a new one is a rise.
model::MemoryDemand demand_of(const model::Snapshot& snapshot, int window);

// sd / M while it rises, else 0: how much of an application's remaining time weighs against its cost.
double delta_of(const model::MemoryDemand& demand);
// Bytes that it is expected to come to above the latest: max(0, M + z*sd - latest) while it rises, else 0.
std::uint64_t growth_of(const model::MemoryDemand& demand, double z);

}  // namespace berth::policies
