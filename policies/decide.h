// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"

#include <string>
#include <string_view>
#include <vector>

namespace berth::policies {

// All policies, by the names of `berthctl plan --policy`.
const std::vector<std::string>& policy_names();

// Runs the named policies (all of them where `only` is empty) and the arbiter. It is the one entry to this
// module: daemon, plan and replay call nothing else. Pure: the same snapshot and settings give the same plan,
// byte for byte. `only` must hold names out of policy_names().
model::Plan decide(const model::Snapshot& snapshot, const PolicySettings& settings,
                   const std::vector<std::string>& only = {});

}  // namespace berth::policies
