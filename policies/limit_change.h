// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/workload.h"

#include <optional>

namespace berth::policies {

// An action on a limit, in cores or bytes: the value that it sets, the one that stands, and the one from
// before berth. No limit is infinity.
struct LimitChange {
  double wanted = 0;
  double present = 0;
  std::optional<double> original;  // nullopt where berth holds no limit of the workload
};

// nullopt where the action sets no limit.
std::optional<LimitChange> limit_change(const model::Action& action, const model::Workload& workload);

}  // namespace berth::policies
