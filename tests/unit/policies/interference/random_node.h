// SPDX-License-Identifier: Apache-2.0
// Random nodes for properties, all of a case drawn from one seed so that a failure is repeated by its number.
#pragma once

#include "model/snapshot.h"
#include "policies/settings.h"

#include <cstdint>

namespace berth::policies::testing {

struct RandomCase {
  model::Snapshot snapshot;
  PolicySettings settings;
};

// Irregular on purpose. There are offline and forbidden vCPUs, cores of one to four threads, and hosts
// without LLC information. Pins stand, overlap or never could stand. Requests may be zero or more than there
// is.
RandomCase random_hybrid_case(std::uint64_t seed);  // with cores of two or three kinds
RandomCase random_case(std::uint64_t seed);

// The same with at most 8 vCPUs and 4 latency-sensitive instances, for the search "optimal". Some of them are
// pending.
RandomCase small_case(std::uint64_t seed);

}  // namespace berth::policies::testing
