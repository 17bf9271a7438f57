// SPDX-License-Identifier: Apache-2.0
// Functions common to the policies that evict: which workloads can be victims, and their worth.
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"

#include <cstdint>
#include <optional>
#include <string>

namespace berth::policies {

// In an emergency, each step of an eviction has this time at most, and the evictor needs about the least.
inline constexpr double kEmergencyGrace_s = 1;
inline constexpr double kLeastStep_s = 0.2;

// A workload's use by its newest sample with that figure; cores or bytes, nullopt without one.
std::optional<double> latest_use(const model::Workload& workload, model::Resource resource);
// Bytes of memory by the newest sample with that figure; 0 without one.
std::uint64_t memory_in_use(const model::Workload& workload);
// CPU seconds that the workload used so far, as counted by the kernel. Without that count: its mean use times
// its age, or times the time since its first sample.
double cpu_seconds_used(const model::Workload& workload, double now);

// Whether berth may end it: best-effort, managed by berth, not spared, and not being ended already.
bool may_be_ended(const model::Workload& workload);
// As may_be_ended(), and it is known to use memory.
bool can_be_evicted(const model::Workload& workload);
// Memory of workloads that berth is evicting. It counts as free: it soon will be, and no other workload must
// be evicted for it.
std::uint64_t memory_being_freed(const model::Snapshot& snapshot);

// The first step of eviction for this workload. Each step has `grace_s` before the next; 1 s at most in an
// emergency.
model::Action eviction_of(const model::Workload& workload, double grace_s, bool emergency, const char* policy,
                          std::string reason);

}  // namespace berth::policies
