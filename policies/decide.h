// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::policies {

// All policies, by the names of `berthctl plan --policy`.
const std::vector<std::string>& policy_names();

// Services that the plan gives no vCPUs of their own. In the next snapshot their pins are shared
// (model::Workload::shares).
std::set<std::string> without_own_vcpus(const model::Plan& plan);

// Runs the named policies (all of them where `only` is empty) and the arbiter. Pure: the same snapshot and
// settings give the same plan, byte for byte. `only` must hold names out of policy_names().
model::Plan decide(const model::Snapshot& snapshot, const PolicySettings& settings,
                   const std::vector<std::string>& only = {});

// The plan for the workloads `arrived` (ids) since the last tick, on the figures of that tick. It has their
// pins and memory nodes, and the pins of others that have to leave vCPUs for these. All else changes by steps
// from tick to tick, or counts readings, so it waits for the next tick, and so does an arrived instance whose
// vCPUs depend on that. The ids of the decisions are made of `now`, epoch seconds, because that tick may have
// had the same ones. Pure.
model::Plan decide_places(const model::Snapshot& snapshot, const PolicySettings& settings,
                          const std::set<std::string>& arrived, double now);

}  // namespace berth::policies
