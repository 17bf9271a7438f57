// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"

#include <cstddef>
#include <optional>
#include <string>

namespace berth::daemon {

// Interrupts on vCPUs that instances own, after the last look at them.
struct InterruptsReport {
  model::CpuSet off;                   // the vCPUs that berth keeps them off; empty: none
  std::size_t moved = 0;               // that berth holds elsewhere
  std::size_t refused = 0;             // there still, as the kernel does not let them be moved
  std::size_t others = 0;              // there still, as another program put them there after berth
  std::string irqbalance;              // "absent", "pending", "told", "foreign", "silent"
  std::optional<std::string> problem;  // why none can be moved
};

}  // namespace berth::daemon
