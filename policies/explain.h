// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/explanation.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"

#include <optional>
#include <string>

namespace berth::policies {

// What the plan, made of this snapshot with these settings, says of a workload, or of one that waits to be
// admitted; nullopt where there is none of that id. What only a daemon knows (unmanaged) is left open.
std::optional<model::WorkloadExplanation> explain_workload(const model::Snapshot& snapshot,
                                                           const model::Plan& plan,
                                                           const PolicySettings& settings,
                                                           const std::string& id);

// Of a workload's id, of a Spark application's, or of a decision in the plan and the workload it is about; no
// member is set where `subject` is none of these.
model::Explanation explain(const model::Snapshot& snapshot, const model::Plan& plan,
                           const PolicySettings& settings, const std::string& subject);

}  // namespace berth::policies
