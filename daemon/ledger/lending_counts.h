// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"

#include <cstdint>

namespace berth::daemon {

// Of lent vCPUs, since berthd started; for the metrics.
struct LendingCounts {
  std::uint64_t misses = 0;     // targets that were missed
  std::uint64_t withdrawn = 0;  // vCPUs that were taken back for any reason

  // Call it once for each plan that is carried out.
  void count(const model::Plan& plan) {
    if (!plan.findings.interference || !plan.findings.interference->borrowing) return;
    for (const auto& [id, lender] : plan.findings.interference->borrowing->lenders) {
      if (lender.missed) ++misses;
      withdrawn += lender.withdrawn.size();
    }
  }
};

}  // namespace berth::daemon
