// SPDX-License-Identifier: Apache-2.0
// Requests that fit no single NUMA node.
#include "policies/placement/wide.h"

#include "policies/decide.h"
#include "policies/placement/admission.h"
#include "policies/placement/rank.h"
#include "policies/placement/vcpus.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/placement/gpu_hosts.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using testing::best_effort;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::gpu;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGiB;
using testing::latency_sensitive;
using ::testing::Not;
using testing::pinned;
using testing::request;
using ::testing::SizeIs;

// Nodes of `cores` vCPUs without SMT, each with its own cache: vCPUs 0-3 are node 0, 4-7 node 1.
model::Snapshot many_nodes(int sockets, int nodes_per_socket, int cores = 4,
                           std::vector<model::Gpu> gpus = {}, model::NumaDistances distances = {}) {
  auto cpus = testing::cpus_of({.sockets = sockets,
                                .llcs_per_socket = nodes_per_socket,
                                .cores_per_llc = cores,
                                .threads_per_core = 1});
  for (model::Cpu& cpu : cpus) cpu.numa = *cpu.llc;
  model::Snapshot host = testing::snapshot_of(
      model::Topology::make(std::move(cpus), std::move(gpus), std::move(distances)).value());
  host.host = "a";
  host.memory.total_bytes = host.memory.available_bytes = 64 * kGiB;
  return host;
}

model::PendingWorkload batch(int vcpus, int gpus = 0) {
  model::PendingWorkload made = request(vcpus, gpus);
  made.workload_class = model::WorkloadClass::best_effort;
  return made;
}

model::BinRanking rank(const model::PendingWorkload& request, const model::Snapshot& snapshot,
                       const PolicySettings& settings = {}) {
  const Host host(snapshot, settings);
  return rank_bins(request, std::span<const Host>(&host, 1));
}

// "0-1" of a set, "0" of a node, best first.
std::vector<std::string> places(const model::BinRanking& ranking) {
  std::vector<std::string> list;
  for (const auto& bin : ranking.fitting) list.push_back(model::nodes_of(bin).to_string());
  return list;
}

std::string why_not(const model::BinRanking& ranking, const std::string& nodes) {
  for (const auto& rejected : ranking.rejected) {
    if (model::nodes_of(rejected).to_string() == nodes) return rejected.reason;
  }
  return "not rejected";
}

}  // namespace

TEST(Wide, BatchWorkLargerThanANodeGetsTheNearestNodesThatHoldIt) {
  // Nodes 0 and 3 are the nearest pair, against the order of numbers and of sockets.
  const model::Snapshot host = many_nodes(
      2, 2, 4, {},
      {.nodes = {0, 1, 2, 3}, .values = {10, 16, 32, 12, 16, 10, 32, 32, 32, 32, 10, 16, 12, 32, 16, 10}});
  const auto ranking = rank(batch(7), host);
  ASSERT_THAT(places(ranking), ElementsAre("0,3"));
  const model::FittingBin& best = ranking.fitting[0];
  EXPECT_EQ(best.numa, 0);
  EXPECT_EQ(best.cpus, testing::cpus("0-3,12-15"));
  EXPECT_EQ(best.cpu_left_cores, 1);
  EXPECT_THAT(best.reason, HasSubstr("NUMA nodes 0,3 together, 12 apart; leaves 1 of 8 vCPUs"));
  // Each node alone is rejected as before.
  EXPECT_THAT(ranking.rejected, SizeIs(4));
  EXPECT_EQ(why_not(ranking, "2"), "asks 7 vCPUs; 4 of 4 are free");
}

TEST(Wide, ARequestThatFitsANodeGetsNoSet) {
  const auto ranking = rank(batch(4), many_nodes(2, 2));
  EXPECT_THAT(places(ranking), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(ranking.rejected, IsEmpty());
  EXPECT_THAT(ranking.fitting[0].reason, Not(HasSubstr("together")));
}

TEST(Wide, WithoutDistancesNodesOfASocketAreNearest) {
  model::Snapshot host = many_nodes(2, 2);
  host.workloads = {pinned(latency_sensitive("web", 3), "0-2")};
  EXPECT_THAT(places(rank(batch(8), host)), ElementsAre("2-3"));
  // Of three nodes, only these have ten.
  EXPECT_THAT(places(rank(batch(10), host)), ElementsAre("1-3"));
  EXPECT_THAT(rank(batch(10), host).fitting[0].reason, HasSubstr("NUMA nodes 1-3 together, 76 apart"));
}

TEST(Wide, TheSmallestSetComesBeforeTheNearest) {
  model::Snapshot host = many_nodes(2, 3);
  // Of socket 0 all three nodes hold 6, and so do two that are far from each other.
  host.workloads = {pinned(latency_sensitive("a", 2), "0-1"), pinned(latency_sensitive("b", 2), "4-5"),
                    pinned(latency_sensitive("c", 2), "8-9"), pinned(latency_sensitive("d", 4), "16-19"),
                    pinned(latency_sensitive("e", 4), "20-23")};
  EXPECT_THAT(places(rank(batch(6), host)), ElementsAre("0,3"));
}

TEST(Wide, ANodeWithMorePromisedThanItHasTakesNothingFromTheOthers) {
  model::Snapshot host = many_nodes(1, 3);
  host.workloads = {best_effort("greedy")};
  host.workloads[0].cpu_quota_cores = 9;
  host.workloads[0].allowed_cpus = testing::cpus("0-3");
  // All nodes together have 12 - 9 vCPUs left, and these two have 8.
  EXPECT_THAT(places(rank(batch(7), host)), ElementsAre("1-2"));
  EXPECT_EQ(why_not(rank(batch(9), host), "0-2"), "asks 9 vCPUs; 3 of 12 are free");
}

TEST(Wide, EightGpusOverTwoNodes) {
  std::vector<model::Gpu> gpus;
  for (int i = 0; i < 8; ++i) gpus.push_back(gpu(fmt::format("g{}", i), i / 4));
  const model::Snapshot host = many_nodes(2, 1, 8, gpus);
  for (const auto& wanted : {request(4, 8), batch(12, 8)}) {
    const auto ranking = rank(wanted, host);
    ASSERT_THAT(places(ranking), ElementsAre("0-1"));
    EXPECT_THAT(ranking.fitting[0].gpus, SizeIs(8));
    EXPECT_EQ(ranking.fitting[0].gpus_left, 0);
  }
  // GPUs go node by node: all of one, and the rest of the other.
  gpus[0].healthy = false;
  const auto ranking = rank(request(4, 6), many_nodes(2, 1, 8, gpus));
  ASSERT_THAT(places(ranking), ElementsAre("0-1"));
  EXPECT_THAT(ranking.fitting[0].gpus, ElementsAre("g1", "g2", "g4", "g5", "g6", "g7"));
  EXPECT_EQ(ranking.fitting[0].gpus_left, 1);
  EXPECT_EQ(why_not(rank(request(4, 8), many_nodes(2, 1, 8, gpus)), "0-1"),
            "asks 8 GPUs; suitable here: 7 of 8, 1 unhealthy");
  EXPECT_EQ(why_not(rank(request(4, 1), many_nodes(2, 1)), "0-1"), "asks 1 GPU; these NUMA nodes have none");
}

TEST(Wide, GpusOfOneNodeAndVcpusOfItsNeighbour) {
  model::Snapshot host = many_nodes(2, 2, 4, {gpu("g0", 1)});
  host.workloads = {pinned(latency_sensitive("web", 3), "4-6")};
  const auto ranking = rank(request(2, 1), host);
  ASSERT_THAT(places(ranking), ElementsAre("0-1"));
  EXPECT_THAT(ranking.fitting[0].gpus, ElementsAre("g0"));
  EXPECT_EQ(ranking.fitting[0].cpus, testing::cpus("0-1"));
}

TEST(Wide, AnInstanceOfAWholeSocketOfSeveralNodes) {
  model::Snapshot host = many_nodes(2, 4);
  host.pending = {request(16)};
  PolicySettings settings;
  settings.placement.memory_nodes = true;
  model::Plan plan = decide(host, settings);
  ASSERT_THAT(places(plan.findings.placement->pending.at("new")), ElementsAre("0-3"));
  EXPECT_EQ(plan.findings.interference->instances.at("new").cpus, testing::cpus("0-15"));
  // A smaller one takes as many nodes as it needs, of one socket.
  host.pending[0].vcpus = 7;
  EXPECT_THAT(places(propose_places(host, settings).findings.pending.at("new")), ElementsAre("0-1"));
  // Once it has come, it is pinned where it was told, and its memory follows.
  host.pending.clear();
  host.workloads = {latency_sensitive("new", 7)};
  host.workloads[0].told_cpus = testing::cpus("16-22");
  plan = decide(host, settings);
  EXPECT_THAT(testing::pins(plan), ElementsAre("new=16-22"));
  const auto bond = std::find_if(plan.actions.begin(), plan.actions.end(), [](const model::Action& action) {
    return action.sets<model::MemoryNodes>() != nullptr;
  });
  ASSERT_NE(bond, plan.actions.end());
  EXPECT_EQ(bond->sets<model::MemoryNodes>()->nodes, testing::cpus("4-5"));
  EXPECT_THAT(bond->reason, HasSubstr("are on NUMA nodes 4-5"));
}

TEST(Wide, ASetThatWasToldIsKept) {
  model::Snapshot host = many_nodes(1, 4);
  host.pending = {request(6)};
  host.pending[0].told_cpus = testing::cpus("6-11");
  const model::Plan plan = decide(host, {});
  const auto& told = plan.findings.placement->pending.at("new");
  ASSERT_THAT(places(told), ElementsAre("1-2"));
  EXPECT_EQ(told.fitting[0].cpus, testing::cpus("6-11"));
  EXPECT_THAT(told.fitting[0].reason, HasSubstr("as its admission told"));
  EXPECT_EQ(plan.findings.interference->instances.at("new").cpus, testing::cpus("6-11"));
  // A single node that would do meanwhile does not take its place. (These nodes share a cache.)
  auto cpus = testing::cpus_of({.cores_per_llc = 16, .threads_per_core = 1});
  for (model::Cpu& cpu : cpus) cpu.numa = cpu.core / 4;
  host.topology = model::Topology::make(std::move(cpus)).value();
  host.pending[0].vcpus = 3;
  host.pending[0].told_cpus = testing::cpus("7-9");
  const auto places_now = [&host] { return places(propose_places(host, {}).findings.pending.at("new")); };
  EXPECT_THAT(places_now(), ElementsAre("1-2", "0", "1", "2", "3"));
  EXPECT_EQ(decide(host, {}).findings.interference->instances.at("new").cpus, testing::cpus("7-9"));
  // If one of them is gone, it is placed like a new one.
  host.workloads = {pinned(latency_sensitive("web", 1), "8")};
  EXPECT_THAT(places_now(), Not(Contains("1-2")));
  EXPECT_THAT(places_now(), SizeIs(4));
}

TEST(Wide, ToldGpusOfTwoNodesStayItsOwn) {
  std::vector<model::Gpu> gpus;
  for (int i = 0; i < 6; ++i) gpus.push_back(gpu(fmt::format("g{}", i), i / 2));
  model::Snapshot host = many_nodes(1, 3, 4, gpus);
  host.pending = {batch(2, 3)};
  host.pending[0].told_gpus = {"g1", "g4", "g5"};
  const auto places_of = propose_places(host, {}).findings.pending.at("new");
  ASSERT_THAT(places(places_of), ElementsAre("0,2"));
  EXPECT_THAT(places_of.fitting[0].gpus, ElementsAre("g1", "g4", "g5"));
}

TEST(Wide, OnAFleetSingleNodesComeFirst) {
  const PolicySettings settings;
  model::Snapshot small = many_nodes(2, 2);
  model::Snapshot large = many_nodes(1, 1, 16);
  large.host = "z";
  large.workloads = {pinned(latency_sensitive("web", 8), "0-7")};
  const std::vector<Host> hosts{Host(small, settings), Host(large, settings)};
  const auto ranking = rank_bins(batch(7), hosts);
  ASSERT_THAT(ranking.fitting, SizeIs(2));
  EXPECT_EQ(ranking.fitting[0].host, "z");
  EXPECT_EQ(ranking.fitting[1].numa_nodes, testing::cpus("0-1"));
}

TEST(Wide, ASetIsTakenWhole) {
  const PolicySettings settings;
  Host host(many_nodes(2, 2), settings);
  model::PendingWorkload first = batch(7);
  EXPECT_TRUE(admit(host, first).admitted);
  // Its 7 cores count on both nodes of its set alone.
  first.id = "second";
  EXPECT_EQ(admit(host, first).bins.fitting.front().numa_nodes, testing::cpus("2-3"));
  first.id = "third";
  const auto refused = admit(host, first);
  EXPECT_FALSE(refused.admitted);
  EXPECT_THAT(refused.reason, HasSubstr("NUMA nodes 0-3: asks 7 vCPUs; 2 of 16 are free"));
  EXPECT_THAT(refused.change,
              Contains("ask for 2 vCPUs at most, or 5 more have to become free on NUMA nodes 0-3"));
}

TEST(Wide, SaysWhyASetDoesNotHelp) {
  model::Snapshot host = many_nodes(2, 2);
  // No socket has so many, and it may not cross sockets.
  const PolicySettings settings;
  Host judge(host, settings);
  const auto refused = admit(judge, request(9));
  EXPECT_EQ(why_not(refused.bins, "0-3"),
            "asks 9 vCPUs, the largest socket has 8 (allow_cross_socket = false)");
  EXPECT_THAT(
      refused.change,
      Contains("ask for no more vCPUs than a socket has, or set interference.allow_cross_socket = true"));
  PolicySettings crossing;
  crossing.interference.allow_cross_socket = true;
  EXPECT_THAT(places(rank(request(9), host, crossing)), ElementsAre("0-2"));
  // Its domains lie in single nodes: a set has nothing for it.
  for (int node = 0; node < 4; ++node)
    host.workloads.push_back(
        pinned(latency_sensitive(fmt::format("w{}", node), 2), fmt::format("{}-{}", 4 * node, 4 * node + 1)));
  EXPECT_THAT(rank(request(3), host).rejected, SizeIs(4));
  // Memory belongs to the host.
  EXPECT_THAT(rank(request(1, 0, 100), host).rejected, SizeIs(4));
}

TEST(Wide, GrowsSetsOnHostsWithManyNodes) {
  // 40 nodes: there are more sets of 10 nodes than are looked at one by one.
  const auto ranking = rank(batch(39), many_nodes(4, 10));
  ASSERT_THAT(ranking.fitting, SizeIs(1));
  EXPECT_EQ(ranking.fitting[0].numa_nodes, testing::cpus("0-9"));
  const auto whole = rank(batch(160), many_nodes(4, 10));
  ASSERT_THAT(whole.fitting, SizeIs(1));
  EXPECT_THAT(whole.fitting[0].numa_nodes, SizeIs(40));
  EXPECT_EQ(why_not(rank(batch(161), many_nodes(4, 10)), "0-39"), "asks 161 vCPUs; 160 of 160 are free");
  // More nodes than have distances: no sets.
  EXPECT_THAT(rank(batch(5), many_nodes(13, 5)).fitting, IsEmpty());
}

namespace {

struct LargeHost {
  model::Snapshot snapshot;
  model::PendingWorkload request;
};

// Up to eight nodes with owners, GPUs and claims on them; a request that is often larger than a node.
LargeHost draw(std::uint64_t seed) {
  testing::Draws draws(seed);
  const int sockets = draws.number(1, 2);
  const int nodes = draws.number(1, 4);
  std::vector<model::Gpu> gpus;
  for (int node = 0; node < sockets * nodes; ++node) {
    for (int count = draws.number(-1, 2); count > 0; --count)
      gpus.push_back(gpu(fmt::format("g{}", gpus.size()), node));
  }
  if (draws.chance(0.5)) {
    for (std::size_t b = 0; b < gpus.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        const auto link =
            draws.chance(0.3) ? model::GpuLink::nv : static_cast<model::GpuLink>(draws.number(1, 5));
        if (draws.chance(0.8)) gpus[a].links.push_back({.id = gpus[b].id, .link = link});
      }
    }
    // "g10" comes before "g2".
    for (model::Gpu& from : gpus) {
      std::sort(from.links.begin(), from.links.end(),
                [](const model::GpuPeer& a, const model::GpuPeer& b) { return a.id < b.id; });
    }
  }
  model::NumaDistances distances;
  if (draws.chance(0.7)) {
    for (int node = 0; node < sockets * nodes; ++node) distances.nodes.push_back(node);
    for (int i = 0; i < sockets * nodes * sockets * nodes; ++i)
      distances.values.push_back(draws.chance(0.5) ? 20 : draws.number(11, 32));
  }
  LargeHost drawn{.snapshot = many_nodes(sockets, nodes, 4, std::move(gpus), std::move(distances)),
                  .request = request(draws.number(1, 14), draws.chance(0.4) ? draws.number(1, 5) : 0)};
  for (int node = 0; node < sockets * nodes; ++node) {
    const int owned = draws.number(0, 4);
    if (owned > 0)
      drawn.snapshot.workloads.push_back(pinned(latency_sensitive(fmt::format("w{}", node), owned),
                                                fmt::format("{}-{}", 4 * node, 4 * node + owned - 1)));
  }
  drawn.snapshot.workloads.push_back(best_effort("z"));
  drawn.snapshot.workloads.back().cpu_quota_cores = draws.number(1, 12) / 4.0;
  if (draws.chance(0.5)) drawn.request.workload_class = model::WorkloadClass::best_effort;
  return drawn;
}

}  // namespace

// Every set of nodes tried, with the judgement of a single bin.
RC_GTEST_PROP(WideProperty, TheSetIsTheSmallestThenTheNearestOfAll, ()) {
  const LargeHost drawn = draw(*testing::any_seed());
  const PolicySettings settings;
  const Host host(drawn.snapshot, settings);
  const model::BinRanking ranking = rank_bins(drawn.request, std::span<const Host>(&host, 1));
  const std::size_t count = host.bins().size();
  using Worth = std::tuple<std::size_t, double, double>;
  std::optional<Worth> least;
  const auto links_of = [](const Candidate& candidate) {
    return candidate.set && candidate.set->nodes.size() > 1 ? candidate.linkage.distance : 0;
  };
  for (unsigned mask = 1; mask < 1U << count; ++mask) {
    std::vector<std::size_t> bins;
    for (std::size_t bin = 0; bin < count; ++bin) {
      if (((mask >> bin) & 1U) != 0) bins.push_back(bin);
    }
    const Candidate candidate = consider_set(host, 0, bins, drawn.request);
    const bool holds = candidate.lack == Lack::nothing &&
                       !choose_vcpus(host, bin_of(host, candidate), drawn.request).cpus.empty();
    const Worth worth(bins.size(), links_of(candidate), candidate.distance);
    if (holds && (!least || worth < *least)) least = worth;
  }
  RC_CLASSIFY(least && std::get<0>(*least) > 1, "needs a set");
  RC_CLASSIFY(least && std::get<0>(*least) > 2, "needs a set of three or more");
  RC_ASSERT(ranking.fitting.empty() == !least.has_value());
  if (!least) return;
  const model::CpuSet nodes = model::nodes_of(ranking.fitting.front());
  RC_ASSERT(nodes.size() == std::get<0>(*least));
  double distance = 0;
  for (const int a : nodes) {
    for (const int b : nodes) {
      if (a < b) distance += host.distance(static_cast<std::size_t>(a), static_cast<std::size_t>(b));
    }
  }
  RC_ASSERT(distance == std::get<2>(*least));
  std::vector<std::size_t> chosen;
  for (const int node : nodes) chosen.push_back(static_cast<std::size_t>(node));
  RC_ASSERT(links_of(consider_set(host, 0, chosen, drawn.request)) == std::get<1>(*least));
  for (const model::FittingBin& bin : ranking.fitting)
    RC_ASSERT(bin.numa_nodes.empty() == (std::get<0>(*least) == 1));
}

}  // namespace berth::policies
