// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/snapshot.h"

#include <map>
#include <string>
#include <vector>

namespace berth::policies {

// u of a service that was never measured.
inline constexpr double kUnknownPressure = 0.5;

struct Pressure {
  double value = kUnknownPressure;  // 0..1
  std::string source;               // in words
};

// The pressure of every service of a running or pending workload. It is the snapshot's figure, else the mean
// of cores used per vCPU over its latency-sensitive instances, else kUnknownPressure
// (docs/decisions/interference.md, profile). `workloads` come in a fixed order, so that the sums are the same
// every time.
std::map<std::string, Pressure> service_pressures(const model::Snapshot& snapshot,
                                                  const std::vector<const model::Workload*>& workloads);

struct ModelChoice {
  model::InterferenceModel model;
  model::ModelOrigin origin = model::ModelOrigin::fallback;
  std::string reason;
};
ModelChoice choose_model(const model::Snapshot& snapshot, const std::string& service,
                         const model::InterferenceModel& fallback);

}  // namespace berth::policies
