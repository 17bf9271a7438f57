// SPDX-License-Identifier: Apache-2.0
// Pins as one policy tells them to another.
#pragma once

#include "model/cpu_set.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "policies/settings.h"

#include <map>
#include <optional>
#include <string>

namespace berth::policies {

// By workload id: the number of vCPUs that a pinned workload is to own instead of the number it declares. It
// is larger, and holds only while the workload is a straggler, or waits for vCPUs.
using GrownRequests = std::map<std::string, int>;

// The place of a pending workload, found by placement: its vCPUs; or none, and why.
struct PendingBin {
  model::CpuSet cpus;
  std::string rejection;  // in words; empty where there is a place
};
// By id. A workload that is not in it may be placed anywhere.
using PendingBins = std::map<std::string, PendingBin>;

// vCPUs of other programs are usable only where no others are, and services get none of these. So the
// settings with them among the reserved ones; nullopt if they are that already, or there are none. Pure.
std::optional<PolicySettings> sparing_owned_cpus(const model::Snapshot& snapshot,
                                                 const PolicySettings& settings);

// The instances with the vCPUs that the plan would give them, by workload id, as decide() places them without
// pending ones. A host that only observes has no pins, but a plan has. Pure.
std::map<std::string, model::PlacedInstance> planned_pins(const model::Snapshot& snapshot,
                                                          const PolicySettings& settings);

}  // namespace berth::policies
