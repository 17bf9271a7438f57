// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"
#include "model/workload.h"

#include <optional>
#include <string>

namespace berth::model {

// Why the plan, made of the snapshot, changes a workload's limit. The quota policy lifts a quota. A
// latency-sensitive workload is given more. A best-effort one lends or loses its share, as the straggler
// policy's moves tell. Without such a move the cause is that of `before` (a part given back keeps the cause;
// nullopt: the limit was not held), or lent. A preempted share stays preempted. `subject` is the
// workload in the snapshot, null if it is gone.
HeldCause held_cause(const Plan& plan, const Workload* subject, const std::string& workload,
                     Resource resource, std::optional<HeldCause> before);

}  // namespace berth::model
