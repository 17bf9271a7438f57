// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/explanation.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"

#include <optional>
#include <string>

namespace berth::policies {

// Explains one workload, running or pending, by the plan of this snapshot and these settings. nullopt where
// there is none of that id. Facts that only a daemon knows (`left_alone`) are left open.
std::optional<model::WorkloadExplanation> explain_workload(const model::Snapshot& snapshot,
                                                           const model::Plan& plan,
                                                           const PolicySettings& settings,
                                                           const std::string& id);

// Explains the id of a workload or of a Spark application, or a decision of the plan with its workload. No
// member is set where `subject` is none of these.
model::Explanation explain(const model::Snapshot& snapshot, const model::Plan& plan,
                           const PolicySettings& settings, const std::string& subject);

}  // namespace berth::policies
