// SPDX-License-Identifier: Apache-2.0
#include "model/best_effort.h"

#include <algorithm>

namespace berth::model {

double best_effort_amount(const OversoldResource& found, double factor) {
  const double left = factor * found.capacity - found.latency_sensitive_request;
  const double most = factor * found.best_effort_capacity.value_or(found.capacity);
  return std::max(0.0, std::min(left, most));
}

}  // namespace berth::model
