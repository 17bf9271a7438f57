// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/eviction_findings.h"
#include "model/snapshot.h"

#include <cstdint>
#include <vector>

namespace berth::policies {

// Chooses page cache of best-effort workloads for reclaim, the largest first, until it comes to `bytes`; less
// where there is not as much. No workload is left with less than a process needs. No limit is raised for it:
// a workload held at less already gives nothing more.
std::vector<model::MemoryTaken> squeeze(const model::Snapshot& snapshot, std::uint64_t bytes);

// Seconds since a best-effort workload's memory limit was last lowered or given back in part; infinity where
// none is held. A limit that berth cannot change does not count.
double squeezed_ago(const model::Snapshot& snapshot);

}  // namespace berth::policies
