// SPDX-License-Identifier: Apache-2.0
#include "policies/limit_change.h"

#include <limits>

namespace berth::policies {

namespace {

template <typename Limit>
double number_of(const std::optional<Limit>& limit) {
  return limit ? static_cast<double>(*limit) : std::numeric_limits<double>::infinity();
}

}  // namespace

std::optional<LimitChange> limit_change(const model::Action& action, const model::Workload& workload) {
  const auto change = [&](const auto& wanted, const auto& present, auto model::OriginalLimits::*original) {
    return LimitChange{.wanted = number_of(wanted),
                       .present = number_of(present),
                       .original = workload.original
                                       ? std::optional(number_of((*workload.original).*original))
                                       : std::nullopt};
  };
  if (const auto* quota = action.sets<model::CpuQuota>())
    return change(quota->cores, workload.cpu_quota_cores, &model::OriginalLimits::cpu_quota_cores);
  if (const auto* high = action.sets<model::MemoryHigh>())
    return change(high->bytes, workload.memory_high_bytes, &model::OriginalLimits::memory_high_bytes);
  return std::nullopt;
}

}  // namespace berth::policies
