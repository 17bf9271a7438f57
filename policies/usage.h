// SPDX-License-Identifier: Apache-2.0
// The use of a workload, by its samples.
#pragma once

#include "model/plan.h"
#include "model/workload.h"

#include <cstdint>
#include <optional>

namespace berth::policies {

// Sums of use differ in the last bits.
inline constexpr double kUseRounding = 1e-9;

// Mean cores used over the samples a workload has; 0 without any.
double mean_cores(const model::Workload& workload);

// Bytes by the newest sample that has the figure; nullopt without one.
std::optional<std::uint64_t> latest_memory(const model::Workload& workload);
// The same, and 0 without one.
std::uint64_t memory_in_use(const model::Workload& workload);
// A workload's use by its newest sample with that figure; cores or bytes, nullopt without one.
std::optional<double> latest_use(const model::Workload& workload, model::Resource resource);
// Whether that is of `now`. Work that a user made may be read in turn (docs/ticks.md); meanwhile its use is
// not known, and it must not be taken for idle.
bool is_use_current(const model::Workload& workload, double now);

// CPU seconds that the workload used so far, as counted by the kernel. Without that count: its mean use times
// its age, or times the time since its first sample.
double cpu_seconds_used(const model::Workload& workload, double now);

}  // namespace berth::policies
