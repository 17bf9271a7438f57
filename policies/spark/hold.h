// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/spark/settings.h"

#include <optional>
#include <set>
#include <string>

namespace berth::policies {

// What an executor is held at that came in place of an evicted one: its start is slow, and a JVM that hardly
// runs hardly takes memory. No memory limit: one that stalls there would pass for the pressure that it is
// held for.
inline constexpr double kHeldCores = 0.1;

// Whether memory is still short of what had somebody evicted: some is missing, or the node says that work has
// to go. That everybody stalls for it (psi_full) does not count, as that is of those who are there.
bool is_memory_short(const model::Snapshot& snapshot, const model::Plan& plan);

// Executors alone in their workloads whose application lost another one here (`snapshot.spark_evicted`)
// before they were made. Nobody who is being evicted; nobody where `settings.hold_s` is 0.
std::set<std::string> replacements_to_hold(const model::Snapshot& snapshot, const SparkSettings& settings);

// Their limit: kHeldCores, or what they have where that is less, so that the first one stays; nullopt where
// it is not to be changed. Without decision id.
std::optional<model::Action> hold(const model::Workload& workload, const std::string& reason);

}  // namespace berth::policies
