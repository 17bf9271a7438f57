// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"

#include <string>
#include <string_view>

namespace berth::policies {

// "d-" and 12 hex digits, of the snapshot's time (epoch seconds) and the action's policy, kind, workload and
// value. The same snapshot and settings give the same ids, so that a replay finds its decisions in the log.
std::string decision_id(double snapshot_time, const model::Action& action);
// The id of a decision that is no action of a plan: of `kind` on the workload, with this outcome.
std::string decision_id(double time, std::string_view policy, std::string_view kind,
                        std::string_view workload, std::string_view outcome);

// The value that the action sets, as text ("0-3", "none"); empty where its kind is enough.
std::string value_text(const model::Action& action);

}  // namespace berth::policies
