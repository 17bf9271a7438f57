// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policies/vcpus/search.h"

#include <string>
#include <vector>

namespace berth::policies {

// Places each request on the vCPUs that its admission told, in the order of serving: before any request
// without such a promise is served (docs/decisions/admission.md). A promise counts while its vCPUs would
// stand as a pin, and no placed tenant owns any of them. Returns by request why it is where it is; empty for
// requests that are left to the search. `occupancy`: tenant i is request i.
std::vector<std::string> keep_promises(const std::vector<PlacementRequest>& requests,
                                       const InterferenceSettings& settings, const BestEffortDemand& demand,
                                       Occupancy& occupancy);

}  // namespace berth::policies
