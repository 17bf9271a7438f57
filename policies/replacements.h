// SPDX-License-Identifier: Apache-2.0
// Executors that replace evicted ones: they are held until memory is no longer short.
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"

#include <optional>
#include <set>
#include <string>

namespace berth::policies {

// The CPU limit of an executor that replaces an evicted one. With it the start is slow, and a JVM that hardly
// runs hardly takes memory. There is no memory limit: an executor that stalls at it would look like the
// pressure that it is held for.
inline constexpr double kHeldCores = 0.1;

// Whether the shortage of memory that led to evictions lasts: memory is missing, or the host's state is
// `evict`. A stall of all tasks (psi_full) does not count, as the present work causes it.
bool is_memory_short(const model::Snapshot& snapshot, const model::Plan& plan);

// Executors alone in their workloads whose application lost another one here (`snapshot.spark_evicted`)
// before they were made. Workloads being evicted are left out. Empty where `hold_s` is 0.
std::set<std::string> replacements_to_hold(const model::Snapshot& snapshot, double hold_s);

// Sets kHeldCores as the limit, or the present limit where that is less, so that the first one stays. nullopt
// where the limit cannot be changed. Without decision id.
std::optional<model::Action> hold(const model::Workload& workload, const std::string& reason);

}  // namespace berth::policies
