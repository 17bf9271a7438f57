// SPDX-License-Identifier: Apache-2.0
// What the policies that evict have in common: who can be a victim, and what it is worth.
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"

#include <cstdint>
#include <optional>
#include <string>

namespace berth::policies {

// What a workload uses by its newest sample that says so; cores or bytes, nullopt without one.
std::optional<double> latest_use(const model::Workload& workload, model::Resource resource);
// Bytes of memory by that; 0 where nothing is known.
std::uint64_t memory_in_use(const model::Workload& workload);
// CPU seconds that the workload used so far: counted, else what it used of late as if ever since it was made,
// else over the samples that there are.
double cpu_seconds_used(const model::Workload& workload, double now);

// Whether berth may end it: best-effort, not left alone, not ending already.
bool may_be_ended(const model::Workload& workload);
// And whether that is known to free memory.
bool can_be_evicted(const model::Workload& workload);
// Memory of workloads that berth is evicting. It counts as free: it is about to be, and nobody else is to go
// for it meanwhile.
std::uint64_t memory_being_freed(const model::Snapshot& snapshot);

// The first step for this workload, each step with `grace_s` before the next; in an emergency with 1 s.
model::Action eviction_of(const model::Workload& workload, double grace_s, bool emergency, const char* policy,
                          std::string reason);

}  // namespace berth::policies
