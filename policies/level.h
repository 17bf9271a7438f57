// SPDX-License-Identifier: Apache-2.0
// How much of its place a service has alone (docs/decisions/levels.md).
#pragma once

#include "model/snapshot.h"
#include "policies/interference/settings.h"

namespace berth::policies {

// `work`: a workload, or a pending one. Best-effort work has no level.
template <typename Work>
model::Isolation isolation_of(const Work& work, const InterferenceSettings& settings) {
  return work.isolation.value_or(settings.isolation);
}

template <typename Work>
bool is_shared(const Work& work, const InterferenceSettings& settings) {
  return work.workload_class == model::WorkloadClass::latency_sensitive &&
         isolation_of(work, settings) == model::Isolation::shared;
}

template <typename Work>
bool has_whole_cores(const Work& work, const InterferenceSettings& settings) {
  return isolation_of(work, settings) == model::Isolation::cores;
}

}  // namespace berth::policies
