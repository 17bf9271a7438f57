// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/unit/policies/interference/random_node.h"

namespace berth::policies::testing {

// Random nodes, drawn from one seed. They have Spark applications of any DAG, known and unknown ones, and
// other best-effort work. The memory of latency-sensitive work may go up or down.
RandomCase random_spark_case(std::uint64_t seed);

}  // namespace berth::policies::testing
