// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/unit/policies/random_node.h"

namespace berth::policies::testing {

// Random nodes with Spark applications of any DAG, known and unknown ones, other best-effort work, and
// latency-sensitive work whose memory goes anywhere; drawn from one seed.
RandomCase random_spark_case(std::uint64_t seed);

}  // namespace berth::policies::testing
