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

// Irregular on purpose: offline and forbidden vCPUs, cores of one to four threads, hosts without LLC
// information, pins that stand, that overlap and that never could, requests of zero and of more than there
// is.
RandomCase random_case(std::uint64_t seed);

}  // namespace berth::policies::testing
