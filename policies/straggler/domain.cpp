// SPDX-License-Identifier: Apache-2.0
#include "policies/straggler/domain.h"

#include "policies/interference/standing.h"

#include <algorithm>
#include <vector>

namespace berth::policies {

namespace {

int ownable(const Node& node, const InterferenceSettings& settings, const model::Workload& workload,
            int region) {
  const std::vector<int>& window = node.region(region).window;
  return static_cast<int>(std::count_if(window.begin(), window.end(), [&](int position) {
    const int cpu = node.cpu(position);
    return !settings.reserved_cpus.contains(cpu) &&
           (!workload.allowed_cpus || workload.allowed_cpus->contains(cpu));
  }));
}

// Regions it may grow in.
std::vector<int> regions_of(const Node& node, const InterferenceSettings& settings,
                            const model::Workload& workload) {
  if (!workload.vcpus) return {node.whole()};
  if (!workload.cpus.empty()) {
    const Standing place = check_place(node, settings, workload, static_cast<int>(workload.cpus.size()));
    if (place.stands()) return {place.region};
  }
  const auto regions = node.regions_for(*workload.vcpus, settings.allow_cross_socket);
  return regions ? *regions : std::vector<int>{node.whole()};
}

}  // namespace

int domain_cores(const Node& node, const InterferenceSettings& settings, const model::Workload& workload) {
  int most = 0;
  for (const int region : regions_of(node, settings, workload))
    most = std::max(most, ownable(node, settings, workload, region));
  return std::clamp(node.usable_count() - std::max(1, settings.be_min_cpus), 0, most);
}

}  // namespace berth::policies
