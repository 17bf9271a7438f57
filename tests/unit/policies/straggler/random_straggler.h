// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/unit/policies/interference/random_node.h"

namespace berth::policies::testing {

// Random nodes, drawn from one seed. They have tasks of every kind of progress, best-effort work with and
// without limits, and pending requests. Limits are held for every reason, also for those that the class rules
// out.
RandomCase random_straggler_case(std::uint64_t seed);

}  // namespace berth::policies::testing
