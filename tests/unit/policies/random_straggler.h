// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/unit/policies/random_node.h"

namespace berth::policies::testing {

// Random nodes with tasks of every kind of progress, best-effort work with and without limits, limits held
// for every reason (also for those that the class rules out), and pending requests; drawn from one seed.
RandomCase random_straggler_case(std::uint64_t seed);

}  // namespace berth::policies::testing
