// SPDX-License-Identifier: Apache-2.0
#include "policies/straggler/redundancy.h"

#include <cmath>

namespace berth::policies {

namespace {

constexpr double kThrottled = 0.05;  // of the time
constexpr double kNearLimit = 0.95;  // of the limit

}  // namespace

std::optional<Redundancy> redundancy_of(const Share& share, model::Resource resource,
                                        double expected_utilisation) {
  if (!share.allocation || *share.allocation <= 0 || !share.max_use) return std::nullopt;
  Redundancy result;
  result.utilisation = *share.max_use / *share.allocation;
  if (result.utilisation >= expected_utilisation) return result;
  const double spare = *share.allocation - *share.max_use / expected_utilisation;
  result.reclaimable = resource == model::Resource::memory ? std::floor(spare) : spare;
  // A share that is lent fully has the expected utilisation, except for rounding.
  if (result.reclaimable < kNothing) result.reclaimable = 0;
  return result;
}

bool presses(const model::Workload& workload, const Share& share, model::Resource resource) {
  if (!share.held || share.held->cause != model::HeldCause::lent || !share.limit) return false;
  if (resource == model::Resource::cpu && workload.cpu_throttled.value_or(0) > kThrottled) return true;
  // Without use there is no pressure, however low the limit.
  return share.last_use.value_or(0) > 0 && *share.last_use >= kNearLimit * *share.limit;
}

}  // namespace berth::policies
