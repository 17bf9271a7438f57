// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"

namespace berth::model {

// The cores that a plan leaves to best-effort work, in a domain in which services without vCPUs of their own
// are at home (docs/decisions/levels.md).
struct BestEffortCores {
  CpuSet cpus = {};
  int cores = 0;       // with a vCPU in `cpus`
  double fell_at = 0;  // epoch seconds of the last tick that took one away; 0: none did

  friend bool operator==(const BestEffortCores&, const BestEffortCores&) = default;
};

}  // namespace berth::model
