// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/promised.h"

#include "policies/vcpus/pin_check.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

std::vector<std::string> keep_promises(const std::vector<PlacementRequest>& requests,
                                       const InterferenceSettings& settings, const BestEffortDemand& demand,
                                       Occupancy& occupancy) {
  const Node& node = occupancy.node();
  std::vector<std::string> reasons(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const PlacementRequest& request = requests[i];
    const int tenant = static_cast<int>(i);
    if (request.told.empty() || occupancy.placed(tenant)) continue;
    model::Workload as_pinned;
    as_pinned.cpus = request.told;
    as_pinned.allowed_cpus = request.allowed;
    const PinCheck standing = request.whole_cores ? check_cores(node, settings, as_pinned, request.vcpus)
                                                  : check_pin(node, settings, as_pinned, request.vcpus);
    std::vector<int> cpus = node.positions(request.told);
    if (!standing.stands() || occupancy.unowned_count() - std::ssize(cpus) < demand.min_cpus) continue;
    if (std::any_of(cpus.begin(), cpus.end(), [&](int at) { return occupancy.owner(at) >= 0; })) continue;
    reasons[i] = fmt::format("placed on {} of {}, as its admission told", request.told.to_string(),
                             node.region(standing.region).name);
    occupancy.ask(tenant, static_cast<int>(cpus.size()));
    occupancy.place(tenant, standing.region, std::move(cpus));
  }
  return reasons;
}

}  // namespace berth::policies
