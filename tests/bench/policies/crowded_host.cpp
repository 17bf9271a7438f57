// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/policies/crowded_host.h"

#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::policies::bench {

namespace {

model::InterferenceModel draw_model(Models models, testing::Draws& draws) {
  if (models == Models::measured)
    return {.b0 = 0, .k1 = 0.1 + 0.5 * draws.fraction(), .k2 = 0.02 + 0.18 * draws.fraction()};
  return {.b0 = 0, .k1 = draws.fraction(), .k2 = draws.fraction()};
}

// Sizes that sum up to the vCPUs: all alike, or one more each, in a random order.
std::vector<int> draw_sizes(const Crowd& crowd, testing::Draws& draws) {
  std::vector<int> sizes;
  for (int i = 0; i < crowd.instances; ++i) {
    sizes.push_back((crowd.vcpus + crowd.instances - 1 - i) / crowd.instances);
  }
  for (std::size_t i = sizes.size() - 1; i > 0; --i) {
    std::swap(sizes[i], sizes[static_cast<std::size_t>(draws.number(0, static_cast<int>(i)))]);
  }
  return sizes;
}

}  // namespace

model::Snapshot crowded_host(const Crowd& crowd) {
  testing::Draws draws(crowd.seed);
  model::Snapshot snapshot =
      testing::snapshot_of(testing::host({.sockets = crowd.sockets,
                                          .llcs_per_socket = crowd.llcs_per_socket,
                                          .cores_per_llc = crowd.cores_per_socket / crowd.llcs_per_socket}));
  for (int i = 0; i < crowd.services; ++i) {
    model::ServiceProfile& profile = snapshot.services[fmt::format("service-{:04}", i)];
    profile.pressure = 0.05 + 0.9 * draws.fraction();
    if (crowd.models != Models::constant) profile.model = draw_model(crowd.models, draws);
  }
  const std::vector<int> sizes = crowd.instances > 0 ? draw_sizes(crowd, draws) : std::vector<int>();
  for (int i = 0; i < crowd.instances; ++i) {
    model::Workload workload =
        testing::latency_sensitive(fmt::format("web-{:04}", i), sizes[static_cast<std::size_t>(i)], i);
    workload.service = fmt::format("service-{:04}", i % crowd.services);
    snapshot.workloads.push_back(std::move(workload));
  }
  snapshot.workloads.insert(
      snapshot.workloads.begin(),
      testing::best_effort(
          "batch", crowd.best_effort * (static_cast<int>(snapshot.topology.usable().size()) - crowd.vcpus)));
  return snapshot;
}

}  // namespace berth::policies::bench
