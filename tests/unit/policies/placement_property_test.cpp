// SPDX-License-Identifier: Apache-2.0
// Placement against its plain restatement, on random hosts with random GPUs.
#include "policies/decide.h"
#include "policies/placement/rank.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/gpu_hosts.h"
#include "tests/unit/policies/naive_placement.h"
#include "tests/unit/policies/random_node.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using testing::kGiB;

struct Fleet {
  std::vector<model::Snapshot> hosts;
  PolicySettings settings;
  model::PendingWorkload request;
};

class FleetDrawer : private testing::Draws {
 public:
  using Draws::Draws;

  Fleet draw() {
    Fleet fleet;
    for (int count = number(1, 3); count > 0; --count) {
      // Settings are the first host's.
      testing::RandomCase node = testing::random_case(static_cast<std::uint64_t>(number(0, 1 << 30)));
      if (fleet.hosts.empty()) fleet.settings = node.settings;
      fleet.hosts.push_back(equipped(std::move(node.snapshot), count));
    }
    fleet.settings.placement.avoid_gpu_nodes = chance(0.8);
    fleet.request = request();
    return fleet;
  }

 private:
  model::Snapshot equipped(model::Snapshot host, int index) {
    host.host = "host-" + std::to_string(index);
    host.pending.clear();
    host.memory.total_bytes = static_cast<std::uint64_t>(number(0, 4)) * 16 * kGiB;
    host.memory.available_bytes =
        chance(0.5) ? host.memory.total_bytes : host.memory.total_bytes / static_cast<unsigned>(number(1, 4));
    std::vector<model::Gpu> gpus;
    for (int count = chance(0.7) ? number(1, 5) : 0; count > 0; --count) {
      model::Gpu gpu = testing::gpu("g" + std::to_string(count), number(0, 2), chance(0.5) ? 80 : 24);
      if (chance(0.2)) gpu.numa.reset();
      if (chance(0.3)) gpu.model = "NVIDIA A10";
      if (chance(0.3)) gpu.memory_used_bytes = gpu.memory_bytes / static_cast<unsigned>(number(1, 4));
      gpu.healthy = chance(0.9);
      if (chance(0.1)) gpu.holder = host.workloads.front().id;
      gpus.push_back(std::move(gpu));
    }
    host.topology = model::Topology::make(host.topology.cpus(), gpus).value();
    for (model::Workload& workload : host.workloads) {
      if (!gpus.empty() && chance(0.1)) workload.gpus = {gpus.front().id};
      if (chance(0.2)) workload.memory_request_bytes = static_cast<std::uint64_t>(number(0, 8)) * kGiB;
      if (chance(0.2)) workload.cpu_quota_cores = number(1, 40) / 4.0;
    }
    if (chance(0.3)) host.advertised.cpu = {.factor = 1 + fraction() / 2};
    if (chance(0.2)) host.advertised.memory = {.factor = 1 + fraction() / 2};
    if (chance(0.05)) host.advertised.memory = {.state = model::SchedulingState::evict};
    return host;
  }

  model::PendingWorkload request() {
    model::PendingWorkload made = testing::request(number(1, 6), chance(0.5) ? number(1, 3) : 0);
    made.service = chance(0.8) ? "service-" + std::to_string(number(0, 3)) : "another";
    if (chance(0.3)) made.workload_class = model::WorkloadClass::best_effort;
    if (chance(0.5)) made.memory_request_bytes = static_cast<std::uint64_t>(number(0, 20)) * kGiB;
    if (made.gpus == 0) return made;
    if (chance(0.5)) made.gpu_memory_bytes = static_cast<std::uint64_t>(number(0, 60)) * kGiB;
    if (chance(0.3)) made.gpu_model = chance(0.5) ? "*H100" : "NVIDIA *";
    made.gpu_exclusive = chance(0.7);
    return made;
  }
};

Fleet any_fleet() { return FleetDrawer(*testing::any_seed()).draw(); }

std::vector<Host> hosts_of(const Fleet& fleet) {
  std::vector<Host> hosts;
  for (const model::Snapshot& snapshot : fleet.hosts) hosts.emplace_back(snapshot, fleet.settings);
  return hosts;
}

std::set<int> as_set(const model::CpuSet& cpus) { return {cpus.begin(), cpus.end()}; }

}  // namespace

RC_GTEST_PROP(PlacementProperty, IsWhatItsRestatementSays, ()) {
  const Fleet fleet = any_fleet();
  const model::BinRanking real = rank_bins(fleet.request, hosts_of(fleet));
  const naive::Places expected = naive::rank(fleet.request, fleet.hosts, fleet.settings);
  RC_CLASSIFY(!real.fitting.empty(), "fits somewhere");
  RC_CLASSIFY(!real.fitting.empty() && fleet.request.gpus > 0, "GPUs are found");
  RC_CLASSIFY(real.fitting.size() > 1, "fits in several");
  RC_ASSERT(real.fitting.size() == expected.fitting.size());
  for (std::size_t i = 0; i < real.fitting.size(); ++i) {
    const model::FittingBin& bin = real.fitting[i];
    const naive::Place& same = expected.fitting[i];
    RC_ASSERT(bin.host == same.host);
    RC_ASSERT(bin.numa == same.numa);
    RC_ASSERT(as_set(bin.cpus) == same.cpus);
    RC_ASSERT(bin.gpus == same.gpus);
    RC_ASSERT(std::abs(bin.cpu_left_cores - same.cpu_left) < 1e-6);
    RC_ASSERT(static_cast<double>(bin.memory_left_bytes) == same.memory_left);
  }
  std::set<std::pair<std::string, int>> rejected;
  for (const auto& bin : real.rejected) {
    RC_ASSERT(rejected.emplace(bin.host, bin.numa).second);
    RC_ASSERT(!bin.reason.empty());
  }
  RC_ASSERT(rejected == expected.rejected);
}

RC_GTEST_PROP(PlacementProperty, NobodyTakesMoreThanThereIs, ()) {
  Fleet fleet = any_fleet();
  Host host = hosts_of(fleet).front();
  std::set<int> owned;
  std::set<std::string> held;
  for (int i = 0; i < 20; ++i) {
    fleet.request.id = "new-" + std::to_string(i);
    const auto ranking = take_best(host, {fleet.request}).at(fleet.request.id);
    if (ranking.fitting.empty()) break;
    const model::FittingBin& best = ranking.fitting.front();
    if (fleet.request.workload_class == model::WorkloadClass::latency_sensitive) {
      RC_ASSERT(static_cast<int>(best.cpus.size()) == fleet.request.vcpus.value());
      for (const int cpu : best.cpus) RC_ASSERT(owned.insert(cpu).second);
    }
    RC_ASSERT(static_cast<int>(best.gpus.size()) == fleet.request.gpus);
    for (const auto& gpu : best.gpus) RC_ASSERT(held.insert(gpu).second || !fleet.request.gpu_exclusive);
    RC_ASSERT(best.cpu_left_cores >= 0);
  }
}

RC_GTEST_PROP(PlacementProperty, DoesNotDependOnTheOrderOfHosts, ()) {
  Fleet fleet = any_fleet();
  const model::BinRanking before = rank_bins(fleet.request, hosts_of(fleet));
  std::reverse(fleet.hosts.begin(), fleet.hosts.end());
  RC_ASSERT(rank_bins(fleet.request, hosts_of(fleet)) == before);
}

// What interference finds for pending work is what placement promised it.
RC_GTEST_PROP(PlacementProperty, ThePlanPlacesPendingWorkWherePlacementDoes, ()) {
  Fleet fleet = any_fleet();
  model::Snapshot& host = fleet.hosts.front();
  host.pending = {fleet.request};
  const model::Plan plan = decide(host, fleet.settings);
  const auto& fitting = plan.findings.placement->pending.at("new").fitting;
  if (fitting.empty() || fleet.request.workload_class == model::WorkloadClass::best_effort) return;
  RC_ASSERT(plan.findings.interference->instances.at("new").cpus == fitting.front().cpus);
}

}  // namespace berth::policies
