// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/optimal/exchanges.h"
#include "policies/vcpus/optimal/work.h"

namespace berth::policies::optimal {

// Totals nearer than this are a tie.
inline constexpr double kTieTotal = 1e-9;

// Makes exchanges of open tenants that lower the layout's total, until there is none or no work is left.
// `tenants`: some or all of the open ones; only these take the first step. The total never rises. Returns
// whether it fell.
bool descend(const std::vector<int>& tenants, Layout& layout, Exchanges& exchanges, Work& work);

// The same, and leaves local minima on the way. It accepts exchanges that raise the total by less than a
// threshold, which falls to 0 (threshold accepting; Dueck and Scheuer, 1990). It draws them by a generator
// with a fixed seed, so that the same problem ends at the same layout.
void improve(const std::vector<int>& tenants, Layout& layout, Exchanges& exchanges, Work& work);

}  // namespace berth::policies::optimal
