// SPDX-License-Identifier: Apache-2.0
// Placement against its plain restatement, on random hosts with random GPUs.
#include "policies/decide.h"
#include "policies/placement/admission.h"
#include "policies/placement/rank.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/interference/naive.h"
#include "tests/unit/policies/interference/random_node.h"
#include "tests/unit/policies/placement/gpu_hosts.h"
#include "tests/unit/policies/placement/naive_placement.h"
#include "tests/unit/policies/seeds.h"
#include "tests/unit/rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using testing::kGiB;

// As in window_property_test.cpp, for the difference of two scores.
constexpr double kScoreBound = berth::testing::rounding(2 * 144 * 16, 8);
// From 1.5 times the vCPUs of a bin, 144 at most, the shares of 40 workloads of 20 cores at most are taken
// off, with three operations for each.
constexpr double kCoresBound = berth::testing::rounding(4 * 40, 1.5 * 144 + 40 * 20);

struct Fleet {
  std::vector<model::Snapshot> hosts;
  PolicySettings settings;
  model::PendingWorkload request;
  std::vector<model::PendingWorkload> queue;  // others, of both classes
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
    fleet.settings.placement.spread_service = chance(0.8);
    if (chance(0.3))
      fleet.settings.oversell.memory_cap_bytes = static_cast<std::uint64_t>(number(1, 70)) * kGiB;
    fleet.request = request();
    for (int i = number(1, 6); i > 0; --i) {
      fleet.queue.push_back(request());
      fleet.queue.back().id = "waiting-" + std::to_string(i);
    }
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
    for (int count = chance(0.7) ? number(1, 8) : 0; count > 0; --count) {
      model::Gpu gpu = testing::gpu("g" + std::to_string(count), number(0, 2), chance(0.5) ? 80 : 24);
      if (chance(0.2)) gpu.numa.reset();
      if (chance(0.3)) gpu.model = "NVIDIA A10";
      if (chance(0.3)) gpu.memory_used_bytes = *gpu.memory_bytes / static_cast<unsigned>(number(1, 4));
      if (chance(0.1)) gpu.memory_bytes.reset();
      if (chance(0.1)) gpu.memory_used_bytes.reset();
      if (chance(0.2)) gpu.other_processes = number(0, 2);
      gpu.healthy = chance(0.9);
      if (chance(0.1)) gpu.holder = host.workloads.front().id;
      gpus.push_back(std::move(gpu));
    }
    if (chance(0.6)) link(gpus);
    host.topology = several_nodes(host.topology.cpus(), gpus);
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

  // Some pairs, by one or both of the two.
  void link(std::vector<model::Gpu>& gpus) {
    const double known = chance(0.5) ? 1 : fraction();
    for (std::size_t b = 0; b < gpus.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        if (!chance(known)) continue;
        const auto kind = chance(0.5) ? static_cast<model::GpuLink>(number(0, 5)) : model::GpuLink::phb;
        const int by = number(0, 2);
        if (by != 1) gpus[a].links.push_back({.id = gpus[b].id, .link = kind});
        if (by != 0) gpus[b].links.push_back({.id = gpus[a].id, .link = kind});
      }
    }
    for (model::Gpu& gpu : gpus) {
      std::sort(gpu.links.begin(), gpu.links.end(),
                [](const model::GpuPeer& a, const model::GpuPeer& b) { return a.id < b.id; });
    }
  }

  // Half of the hosts have several nodes a socket: one for each cache, or for two cores. Their numbers and
  // distances follow no order.
  model::Topology several_nodes(std::vector<model::Cpu> cpus, std::vector<model::Gpu> gpus) {
    const int shape = number(0, 3);
    std::set<int> nodes;
    for (model::Cpu& cpu : cpus) {
      if (shape == 1 && cpu.llc) cpu.numa = *cpu.llc % 6;
      if (shape == 2) cpu.numa = (cpu.core / 2 * 5 + 1) % 6;
      nodes.insert(cpu.numa);
    }
    model::NumaDistances distances;
    if (chance(0.6)) {
      if (chance(0.2)) nodes.erase(nodes.begin());  // one whose distances are not known
      distances.nodes.assign(nodes.begin(), nodes.end());
      for (std::size_t i = nodes.size() * nodes.size(); i > 0; --i)
        distances.values.push_back(chance(0.6) ? 21 : number(10, 40));
    }
    return model::Topology::make(std::move(cpus), std::move(gpus), std::move(distances)).value();
  }

  model::PendingWorkload request() {
    model::PendingWorkload made =
        testing::request(number(1, chance(0.7) ? 6 : 20), chance(0.5) ? number(1, 4) : 0);
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

// Hosts with little on them but GPUs, and a request for several GPUs and nothing that is scarce.
Fleet gpu_fleet() {
  testing::Draws draws(*testing::any_seed());
  Fleet fleet = FleetDrawer(static_cast<std::uint64_t>(draws.number(0, 1 << 30))).draw();
  fleet.settings.interference.be_min_cpus = 1;
  fleet.settings.interference.reserved_cpus = {};
  fleet.settings.oversell.memory_cap_bytes = 0;
  for (model::Snapshot& host : fleet.hosts) {
    if (host.workloads.size() > 2) host.workloads.resize(2);
    host.advertised = {};
    host.memory.total_bytes = host.memory.available_bytes = 1024 * kGiB;
  }
  fleet.request.vcpus = 1;
  fleet.request.memory_request_bytes = 0;
  fleet.request.gpus = draws.number(2, 5);
  if (draws.chance(0.7)) fleet.request.gpu_memory_bytes = 0;
  if (draws.chance(0.7)) fleet.request.gpu_model.reset();
  return fleet;
}

Fleet any_fleet() { return FleetDrawer(*testing::any_seed()).draw(); }

std::vector<Host> hosts_of(const Fleet& fleet) {
  std::vector<Host> hosts;
  for (const model::Snapshot& snapshot : fleet.hosts) hosts.emplace_back(snapshot, fleet.settings);
  return hosts;
}

std::set<int> as_set(const model::CpuSet& cpus) { return {cpus.begin(), cpus.end()}; }

}  // namespace

// Hosts that are ranked one by one come in the order of all hosts ranked together, each with its best bin.
RC_GTEST_PROP(PlacementProperty, HostsRankedAloneComeInTheSameOrder, ()) {
  const Fleet fleet = any_fleet();
  const std::vector<Host> hosts = hosts_of(fleet);
  const model::BinRanking together = rank_bins(fleet.request, hosts);
  std::vector<std::pair<PlaceOrder, std::string>> alone;
  for (const Host& host : hosts) {
    const HostPlace place = best_place(fleet.request, host);
    const auto first = std::find_if(together.fitting.begin(), together.fitting.end(),
                                    [&](const model::FittingBin& bin) { return bin.host == host.name(); });
    RC_ASSERT(place.best.has_value() == (first != together.fitting.end()));
    RC_ASSERT(place.best.has_value() == place.rejection.empty());
    if (!place.best) continue;
    RC_ASSERT(place.best->spot.nodes == model::nodes_of(*first));
    RC_ASSERT(place.best->spot.cpus == first->cpus);
    RC_ASSERT(place.best->spot.gpus == first->gpus);
    alone.emplace_back(place.best->order, host.name());
  }
  std::sort(alone.begin(), alone.end());
  std::vector<std::string> order;
  for (const model::FittingBin& bin : together.fitting)
    if (std::find(order.begin(), order.end(), bin.host) == order.end()) order.push_back(bin.host);
  RC_ASSERT(order.size() == alone.size());
  for (std::size_t i = 0; i < order.size(); ++i) RC_ASSERT(order[i] == alone[i].second);
}

RC_GTEST_PROP(PlacementProperty, IsWhatItsRestatementSays, ()) {
  const Fleet fleet = any_fleet();
  const model::BinRanking real = rank_bins(fleet.request, hosts_of(fleet));
  const naive::Places expected = naive::rank(fleet.request, fleet.hosts, fleet.settings);
  if (expected.close) RC_DISCARD("rounding decides between two bins");
  RC_CLASSIFY(!real.fitting.empty(), "fits somewhere");
  RC_CLASSIFY(!real.fitting.empty() && fleet.request.gpus > 0, "GPUs are found");
  RC_CLASSIFY(!real.fitting.empty() && !real.fitting[0].gpu_links.empty(), "linked GPUs are found");
  RC_CLASSIFY(real.fitting.size() > 1, "fits in several");
  const bool wide = std::any_of(real.fitting.begin(), real.fitting.end(),
                                [](const model::FittingBin& bin) { return !bin.numa_nodes.empty(); });
  RC_CLASSIFY(wide, "fits in a set of nodes");
  RC_ASSERT(real.fitting.size() == expected.fitting.size());
  const bool scored = fleet.request.workload_class == model::WorkloadClass::latency_sensitive;
  RC_CLASSIFY(wide && scored, "latency-sensitive work fits in a set of nodes");
  RC_CLASSIFY(scored && real.fitting.size() > 1 && *real.fitting[0].rise < *real.fitting.back().rise,
              "the rise differs");
  for (std::size_t i = 0; i < real.fitting.size(); ++i) {
    const model::FittingBin& bin = real.fitting[i];
    const naive::Place& same = expected.fitting[i];
    RC_ASSERT(bin.rise.has_value() == scored);
    if (scored) RC_ASSERT(std::abs(*bin.rise - same.rise) <= kScoreBound);
    if (scored) RC_ASSERT(std::abs(*bin.score_after - *bin.score_before - *bin.rise) <= kScoreBound);
    RC_ASSERT(bin.host == same.host);
    RC_ASSERT(as_set(model::nodes_of(bin)) == same.nodes);
    RC_ASSERT(bin.numa == *same.nodes.begin());
    RC_ASSERT(bin.numa_nodes.empty() == (same.nodes.size() == 1));
    RC_ASSERT(as_set(bin.cpus) == same.cpus);
    RC_ASSERT(bin.gpus == same.gpus);
    RC_ASSERT(std::abs(bin.cpu_left_cores - same.cpu_left) <= kCoresBound);
    RC_ASSERT(static_cast<double>(bin.memory_left_bytes) == same.memory_left);
  }
  std::set<std::pair<std::string, int>> rejected;
  for (const auto& bin : real.rejected) {
    RC_ASSERT(!bin.reason.empty());
    if (bin.numa_nodes.empty()) {
      RC_ASSERT(rejected.emplace(bin.host, bin.numa).second);
      continue;
    }
    // All nodes of a host are rejected together only where the request fits neither in one nor in a set.
    RC_ASSERT(std::none_of(real.fitting.begin(), real.fitting.end(),
                           [&](const model::FittingBin& fitting) { return fitting.host == bin.host; }));
  }
  RC_ASSERT(rejected == expected.rejected);
}

RC_GTEST_PROP(PlacementProperty, LinkedGpusAreThoseOfTheRestatement, ()) {
  const Fleet fleet = gpu_fleet();
  const model::BinRanking real = rank_bins(fleet.request, hosts_of(fleet));
  const naive::Places expected = naive::rank(fleet.request, fleet.hosts, fleet.settings);
  const naive::Places without =
      naive::rank(fleet.request, fleet.hosts, fleet.settings, naive::Links::ignored);
  if (expected.close) RC_DISCARD("rounding decides between two bins");
  RC_ASSERT(real.fitting.size() == expected.fitting.size());
  for (std::size_t i = 0; i < real.fitting.size(); ++i) {
    RC_ASSERT(real.fitting[i].host == expected.fitting[i].host);
    RC_ASSERT(as_set(model::nodes_of(real.fitting[i])) == expected.fitting[i].nodes);
    RC_ASSERT(real.fitting[i].gpus == expected.fitting[i].gpus);
  }
  RC_CLASSIFY(!real.fitting.empty() && !real.fitting[0].gpu_links.empty(), "linked GPUs are found");
  RC_CLASSIFY(!real.fitting.empty() && real.fitting[0].gpus != without.fitting.at(0).gpus,
              "links change the choice");
  RC_CLASSIFY(!real.fitting.empty() && !real.fitting[0].numa_nodes.empty(), "in a set of nodes");
}

// Where no host knows a link, the answer is the one of the rules without any word of links.
RC_GTEST_PROP(PlacementProperty, WithoutLinksNothingChanges, ()) {
  Fleet fleet = gpu_fleet();
  for (model::Snapshot& host : fleet.hosts) {
    std::vector<model::Gpu> gpus = host.topology.gpus();
    for (model::Gpu& gpu : gpus) gpu.links.clear();
    RC_ASSERT(host.topology.set_gpus(std::move(gpus)).has_value());
  }
  const model::BinRanking real = rank_bins(fleet.request, hosts_of(fleet));
  const naive::Places expected =
      naive::rank(fleet.request, fleet.hosts, fleet.settings, naive::Links::ignored);
  if (expected.close) RC_DISCARD("rounding decides between two bins");
  RC_CLASSIFY(!real.fitting.empty() && fleet.request.gpus > 1, "several GPUs are found");
  RC_ASSERT(real.fitting.size() == expected.fitting.size());
  for (std::size_t i = 0; i < real.fitting.size(); ++i) {
    RC_ASSERT(real.fitting[i].host == expected.fitting[i].host);
    RC_ASSERT(as_set(model::nodes_of(real.fitting[i])) == expected.fitting[i].nodes);
    RC_ASSERT(real.fitting[i].gpus == expected.fitting[i].gpus);
    RC_ASSERT(real.fitting[i].gpu_links.empty());
    RC_ASSERT(real.fitting[i].reason.find("linked") == std::string::npos);
  }
}

// Counts beside the host, from its inputs alone: owners of vCPUs, sharers of a bin, memory and GPUs.
RC_GTEST_PROP(PlacementProperty, NobodyTakesMoreThanThereIs, ()) {
  const Fleet fleet = any_fleet();
  const model::Snapshot& start = fleet.hosts.front();
  const InterferenceSettings& settings = fleet.settings.interference;
  Host host = hosts_of(fleet).front();
  const model::CpuSet given = testing::given_out(start.topology, settings);
  model::CpuSet unowned = given;
  const auto node = static_cast<double>(unowned.size());
  for (const auto& [id, cpus] : naive::place(start, settings).placed) {
    for (const int cpu : cpus) unowned.erase(cpu);
  }
  const double factor = start.advertised.cpu ? start.advertised.cpu->factor : 1;
  std::uint64_t memory_left = start.memory.available_bytes;
  std::vector<std::pair<model::CpuSet, double>> shared;  // best-effort newcomers: their vCPUs, their cores
  std::set<std::string> held;
  int taken = 0;
  for (int i = 0; i < 20; ++i) {
    model::PendingWorkload request = fleet.queue[static_cast<std::size_t>(i) % fleet.queue.size()];
    request.id = "new-" + std::to_string(i);
    const auto ranking = take_best(host, {request}).at(request.id);
    if (ranking.fitting.empty()) continue;
    ++taken;
    const model::FittingBin& best = ranking.fitting.front();
    model::CpuSet here;
    for (const auto& cpu : start.topology.cpus()) {
      if (model::nodes_of(best).contains(cpu.numa) && given.contains(cpu.cpu)) here.insert(cpu.cpu);
    }
    RC_ASSERT(best.cpus.is_subset_of(here & unowned));
    if (request.workload_class == model::WorkloadClass::latency_sensitive) {
      RC_ASSERT(static_cast<int>(best.cpus.size()) == request.vcpus.value());
      RC_ASSERT(!best.cpus.intersects(settings.reserved_cpus));
      unowned -= best.cpus;
      RC_ASSERT(static_cast<int>(unowned.size()) >= std::max(1, settings.be_min_cpus));
    } else {
      // A workload that runs anywhere counts evenly on all vCPUs without an owner.
      const auto part = static_cast<double>((here & unowned).size());
      double cores = *request.vcpus;
      for (const auto& [within, of_one] : shared) {
        // Where all of its vCPUs have owners by now, its cores count on those of the whole host.
        const model::CpuSet left = within & unowned;
        const model::CpuSet over = left.empty() ? given : left;
        cores += of_one * static_cast<double>((over & here).size()) / static_cast<double>(over.size());
      }
      shared.emplace_back(here, std::min<double>(*request.vcpus, node));
      for (const model::Workload& workload : start.workloads) {
        const bool anywhere = workload.workload_class == model::WorkloadClass::best_effort &&
                              workload.cpu_quota_cores && !workload.allowed_cpus;
        if (!anywhere) continue;
        cores += std::min(*workload.cpu_quota_cores, node) * part / static_cast<double>(unowned.size());
      }
      // Each newcomer that fits but for a billionth fits.
      RC_ASSERT(cores <= factor * part + 1e-9 * taken + kCoresBound);
    }
    RC_ASSERT(request.memory_request_bytes <= memory_left);
    memory_left -= request.memory_request_bytes;
    RC_ASSERT(static_cast<int>(best.gpus.size()) == request.gpus);
    for (const auto& gpu : best.gpus) RC_ASSERT(held.insert(gpu).second || !request.gpu_exclusive);
  }
  RC_CLASSIFY(taken > 2, "several are taken");
}

// As a workload that came last and may only be in the bin that it was given. In a set of nodes it stays on
// its vCPUs, as some nodes of the set may give GPUs alone.
model::Workload running(const model::PendingWorkload& newcomer, const model::FittingBin& bin, int index,
                        model::Snapshot& host) {
  model::Workload made;
  made.id = newcomer.id;
  made.service = newcomer.service;
  made.workload_class = newcomer.workload_class;
  made.vcpus = newcomer.vcpus;
  made.created = 1e8 + index;
  made.memory_request_bytes = newcomer.memory_request_bytes;
  const model::CpuSet nodes = model::nodes_of(bin);
  const bool stays = nodes.size() > 1 && made.workload_class == model::WorkloadClass::latency_sensitive;
  made.allowed_cpus = stays ? bin.cpus : model::CpuSet();
  for (const auto& cpu : host.topology.cpus()) {
    if (!stays && nodes.contains(cpu.numa)) made.allowed_cpus->insert(cpu.cpu);
  }
  host.memory.available_bytes -= std::min(host.memory.available_bytes, newcomer.memory_request_bytes);
  std::vector<model::Gpu> gpus = host.topology.gpus();
  for (model::Gpu& gpu : gpus) {
    if (std::find(bin.gpus.begin(), bin.gpus.end(), gpu.id) == bin.gpus.end()) continue;
    if (gpu.memory_used_bytes) *gpu.memory_used_bytes += newcomer.gpu_memory_bytes;
    if (newcomer.gpu_exclusive) {
      gpu.holder = newcomer.id;
    } else {
      made.gpus.push_back(gpu.id);
    }
  }
  RC_ASSERT(host.topology.set_gpus(std::move(gpus)).has_value());
  return made;
}

// An admitted workload counts at once as it will when it runs.
RC_GTEST_PROP(PlacementProperty, PendingFirstThenRankIsRunningThenRank, ()) {
  const Fleet fleet = any_fleet();
  model::Snapshot then = fleet.hosts.front();
  std::vector<Host> host{Host(then, fleet.settings)};
  int taken = 0;
  for (const model::PendingWorkload& newcomer : fleet.queue) {
    const auto ranking = take_best(host.front(), {newcomer}).at(newcomer.id);
    if (!ranking.fitting.empty())
      then.workloads.push_back(running(newcomer, ranking.fitting.front(), taken++, then));
  }
  RC_CLASSIFY(taken > 1, "several are taken");
  const model::BinRanking pending = rank_bins(fleet.request, host);
  const naive::Places runs = naive::rank(fleet.request, {then}, fleet.settings);
  if (runs.close) RC_DISCARD("rounding decides between two bins");
  RC_ASSERT(pending.fitting.size() == runs.fitting.size());
  for (std::size_t i = 0; i < pending.fitting.size(); ++i) {
    const model::FittingBin& bin = pending.fitting[i];
    RC_ASSERT(as_set(model::nodes_of(bin)) == runs.fitting[i].nodes);
    RC_ASSERT(as_set(bin.cpus) == runs.fitting[i].cpus);
    RC_ASSERT(bin.gpus == runs.fitting[i].gpus);
    RC_ASSERT(std::abs(bin.cpu_left_cores - runs.fitting[i].cpu_left) <= kCoresBound);
    RC_ASSERT(static_cast<double>(bin.memory_left_bytes) == runs.fitting[i].memory_left);
  }
}

RC_GTEST_PROP(PlacementProperty, DoesNotDependOnTheOrderOfHosts, ()) {
  Fleet fleet = any_fleet();
  const model::BinRanking before = rank_bins(fleet.request, hosts_of(fleet));
  std::reverse(fleet.hosts.begin(), fleet.hosts.end());
  RC_ASSERT(rank_bins(fleet.request, hosts_of(fleet)) == before);
}

std::vector<model::Action> pins_of(const model::Plan& plan) {
  std::vector<model::Action> actions;
  std::copy_if(plan.actions.begin(), plan.actions.end(), std::back_inserter(actions),
               [](const model::Action& action) { return action.policy == "interference"; });
  return actions;
}

// Interference finds the place for pending work that placement promised it. For work without a promise it
// finds none, and no workload makes room.
void expect_places_as_promised(Fleet fleet) {
  model::Snapshot& host = fleet.hosts.front();
  host.pending = fleet.queue;
  if (host.pending.size() > 3) host.pending.resize(3);
  const model::Plan plan = decide(host, fleet.settings);
  const model::InterferenceFindings& found = *plan.findings.interference;
  int sensitive = 0;
  int rejected = 0;
  for (const model::PendingWorkload& newcomer : host.pending) {
    if (newcomer.workload_class == model::WorkloadClass::best_effort) continue;
    ++sensitive;
    const auto& fitting = plan.findings.placement->pending.at(newcomer.id).fitting;
    if (!fitting.empty()) {
      RC_ASSERT(found.instances.at(newcomer.id).cpus == fitting.front().cpus);
      continue;
    }
    ++rejected;
    RC_ASSERT(!found.instances.contains(newcomer.id));
    RC_ASSERT(std::any_of(found.unplaceable.begin(), found.unplaceable.end(),
                          [&](const auto& one) { return one.workload == newcomer.id; }));
  }
  RC_CLASSIFY(rejected > 0 && rejected < sensitive, "one has no place, another has");
  // Without the work that has no place, all other work is pinned alike.
  std::erase_if(host.pending, [&](const auto& newcomer) {
    return plan.findings.placement->pending.at(newcomer.id).fitting.empty();
  });
  RC_ASSERT(pins_of(decide(host, fleet.settings)) == pins_of(plan));
}

RC_GTEST_PROP(PlacementProperty, ThePlanPlacesPendingWorkWherePlacementDoes, ()) {
  expect_places_as_promised(any_fleet());
}

// Many vCPUs are reserved, often all of a core, a domain or a NUMA node.
Fleet fleet_with_reserved_vcpus() {
  testing::Draws draws(*testing::any_seed());
  Fleet fleet = any_fleet();
  InterferenceSettings& settings = fleet.settings.interference;
  settings.reserved = Reserved::strict;
  const double share = draws.chance(0.5) ? 0.2 : 0.6;
  for (const model::Cpu& cpu : fleet.hosts.front().topology.cpus()) {
    if (draws.chance(share)) settings.reserved_cpus.insert(cpu.cpu);
    if (draws.chance(0.1) && cpu.numa == 0) settings.reserved_cpus.insert(cpu.cpu);
  }
  return fleet;
}

RC_GTEST_PROP(PlacementProperty, ThePlanPlacesPendingWorkBesideReservedVcpusWherePlacementDoes, ()) {
  expect_places_as_promised(fleet_with_reserved_vcpus());
}

RC_GTEST_PROP(PlacementProperty, WhatIsAdmittedBesideReservedVcpusHasAPlaceOnceItRuns, ()) {
  Fleet fleet = fleet_with_reserved_vcpus();
  fleet.request.workload_class = model::WorkloadClass::latency_sensitive;
  fleet.request.vcpus = *rc::gen::inRange(1, 5);
  fleet.request.gpus = 0;
  fleet.request.memory_request_bytes = 0;
  model::Snapshot then = fleet.hosts.front();
  Host host(then, fleet.settings);
  const model::Admission answer = admit(host, fleet.request);
  RC_CLASSIFY(answer.admitted, "admitted");
  if (!answer.admitted) return;
  const model::FittingBin& bin = answer.bins.fitting.front();
  RC_ASSERT(bin.cpus.is_subset_of(testing::given_out(then.topology, fleet.settings.interference)));
  then.workloads.push_back(running(fleet.request, bin, 0, then));
  RC_ASSERT(decide(then, fleet.settings).findings.interference->instances.contains(fleet.request.id));
}

}  // namespace berth::policies
