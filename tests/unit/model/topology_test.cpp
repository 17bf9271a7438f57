// SPDX-License-Identifier: Apache-2.0
#include "model/topology.h"

#include "tests/unit/model/generators.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::model {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

Cpu cpu(int number, int core, std::optional<int> llc = 0, int socket = 0) {
  Cpu made;
  made.cpu = number;
  made.core = core;
  made.llc = llc;
  made.socket = socket;
  made.numa = socket;
  return made;
}

// Cores 0..3, vCPU c on core c mod 4, one LLC.
std::vector<Cpu> eight() {
  std::vector<Cpu> cpus;
  for (int number = 0; number < 8; ++number) cpus.push_back(cpu(number, number % 4));
  return cpus;
}

std::string refusal(std::vector<Cpu> cpus, std::vector<Gpu> gpus = {}) {
  const auto topology = Topology::make(std::move(cpus), std::move(gpus));
  return topology ? "accepted" : topology.error().message();
}

TEST(Topology, KnowsTheThreadsOfACore) {
  const Topology topology = *Topology::make(eight());
  EXPECT_EQ(topology.core_threads(5), (CpuSet{1, 5}));
  EXPECT_EQ(topology.max_threads_per_core(), 2);
  EXPECT_EQ(topology.smt_rank(1), 0);
  EXPECT_EQ(topology.smt_rank(5), 1);
}

TEST(Topology, AnswersForAnUnknownCpu) {
  const Topology topology = *Topology::make(eight());
  EXPECT_TRUE(topology.core_threads(99).empty());
  EXPECT_EQ(topology.smt_rank(99), -1);
  EXPECT_EQ(topology.find(99), nullptr);
  EXPECT_EQ(topology.find(-1), nullptr);
}

TEST(Topology, OrdersTheWindowByThreadThenCore) {
  // Adjacent numbering: the first threads are 0, 2, 4.
  const Topology topology =
      *Topology::make({cpu(0, 0), cpu(1, 0), cpu(2, 1), cpu(3, 1), cpu(4, 2), cpu(5, 2)});
  EXPECT_THAT(topology.window_order(), ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST(Topology, OrdersCoresByTheirLowestCpuNotTheirIndex) {
  const Topology topology = *Topology::make({cpu(0, 7), cpu(1, 3), cpu(2, 7), cpu(3, 3)});
  EXPECT_THAT(topology.window_order(), ElementsAre(0, 1, 2, 3));
}

TEST(Topology, OrdersHybridCoresOfUnequalWidth) {
  // One core of two threads between two of one.
  const Topology topology = *Topology::make({cpu(0, 0), cpu(1, 1), cpu(2, 1), cpu(3, 2)});
  EXPECT_THAT(topology.window_order(), ElementsAre(0, 1, 3, 2));
}

TEST(Topology, SortsItsCpus) {
  const Topology topology = *Topology::make({cpu(2, 2), cpu(0, 0), cpu(1, 1)});
  EXPECT_EQ(topology.cpus().front().cpu, 0);
  EXPECT_EQ(topology, *Topology::make({cpu(0, 0), cpu(1, 1), cpu(2, 2)}));
}

TEST(Topology, LeavesOfflineAndForbiddenCpusOutOfEveryView) {
  std::vector<Cpu> cpus = eight();
  cpus[1].online = false;
  cpus[6].allowed = false;
  const Topology topology = *Topology::make(cpus);
  EXPECT_EQ(topology.all(), CpuSet::range(0, 7));
  EXPECT_EQ(topology.usable().to_string(), "0,2-5,7");
  EXPECT_EQ(topology.core_threads(1), CpuSet{5});
  EXPECT_EQ(topology.smt_rank(5), 0);
  EXPECT_EQ(topology.smt_rank(1), -1);
  EXPECT_THAT(topology.window_order(), ElementsAre(0, 2, 3, 5, 4, 7));
  EXPECT_EQ(topology.domains(DomainKind::llc).front().cpus, topology.usable());
}

TEST(Topology, NamesLlcDomainsAndTheirSockets) {
  const Topology topology = *Topology::make({cpu(0, 0, 0, 0), cpu(1, 1, 1, 0), cpu(2, 2, 2, 1)});
  const auto& llcs = topology.domains(DomainKind::llc);
  ASSERT_EQ(llcs.size(), 3u);
  EXPECT_EQ(llcs[2].id, 2);
  EXPECT_EQ(llcs[2].socket, 1);
  EXPECT_EQ(llcs[2].cpus, CpuSet{2});
  ASSERT_EQ(topology.sockets().size(), 2u);
  EXPECT_EQ(topology.sockets()[0].cpus, (CpuSet{0, 1}));
}

TEST(Topology, FallsBackToSocketsWithoutLlcInformation) {
  const Topology topology =
      *Topology::make({cpu(0, 0, std::nullopt, 0), cpu(1, 1, std::nullopt, 0), cpu(2, 2, std::nullopt, 1)});
  EXPECT_FALSE(topology.has_llc());
  EXPECT_EQ(topology.sockets().size(), 2U);
  EXPECT_EQ(topology.domains(DomainKind::llc), topology.sockets());
}

// The same on NUMA node 0.
std::vector<Cpu> on_one_node(std::vector<Cpu> cpus) {
  for (Cpu& it : cpus) it.numa = 0;
  return cpus;
}

// As virtual machines with one vCPU a socket have it.
TEST(Topology, SocketsOfOneCoreEachAreNoDomains) {
  const std::vector<Cpu> cpus = on_one_node({cpu(0, 0, 0, 0), cpu(1, 1, 1, 1), cpu(2, 2, 2, 2)});
  const Topology topology = *Topology::make(cpus);
  EXPECT_TRUE(topology.lone_sockets());
  EXPECT_FALSE(topology.has_llc());
  ASSERT_EQ(topology.sockets().size(), 1U);
  EXPECT_EQ(topology.sockets()[0].cpus, CpuSet::range(0, 2));
  EXPECT_EQ(topology.domains(DomainKind::llc), topology.sockets());
  // Threads of one core make no difference. NUMA nodes stay apart, and their numbers are the ids.
  std::vector<Cpu> threads =
      on_one_node({cpu(0, 0, 0, 0), cpu(1, 0, 0, 0), cpu(2, 1, 1, 1), cpu(3, 1, 1, 1), cpu(4, 2, 2, 2)});
  threads[4].numa = 8;
  const Topology apart = *Topology::make(threads);
  ASSERT_EQ(apart.sockets().size(), 2U);
  EXPECT_EQ(apart.sockets()[0].cpus, CpuSet::range(0, 3));
  EXPECT_EQ(apart.sockets()[1].id, 8);
  EXPECT_EQ(apart.socket_domain(*apart.find(4)), 8);
}

TEST(Topology, SocketsOfSeveralCoresOrOfNodesOfTheirOwnStayDomains) {
  const auto lone = [](std::vector<Cpu> cpus) { return Topology::make(std::move(cpus))->lone_sockets(); };
  EXPECT_FALSE(lone(on_one_node({cpu(0, 0, 0, 0), cpu(1, 1, 0, 0), cpu(2, 2, 1, 1)})));
  EXPECT_FALSE(lone({cpu(0, 0, 0, 0), cpu(1, 1, 0, 0)}));
  std::vector<Cpu> nodes = on_one_node({cpu(0, 0, 0, 0), cpu(1, 1, 1, 1)});
  EXPECT_TRUE(lone(nodes));
  nodes[1].numa = 1;
  EXPECT_FALSE(lone(nodes));
  // A core that berth may not use shares the socket all the same; an offline one does not.
  std::vector<Cpu> shared = on_one_node({cpu(0, 0, 0, 0), cpu(1, 1, 1, 1), cpu(2, 2, 1, 1)});
  shared[2].allowed = false;
  EXPECT_FALSE(lone(shared));
  shared[2].online = false;
  EXPECT_TRUE(lone(shared));
}

TEST(Topology, FallsBackToSocketsWhereOneUsableCpuHasNoLlc) {
  std::vector<Cpu> cpus{cpu(0, 0, 0), cpu(1, 1, std::nullopt)};
  EXPECT_FALSE(Topology::make(cpus)->has_llc());
  cpus[1].online = false;
  EXPECT_TRUE(Topology::make(cpus)->has_llc());
}

TEST(Topology, HasNoDomainWithoutAUsableCpu) {
  std::vector<Cpu> cpus{cpu(0, 0, 0, 0), cpu(1, 1, 1, 1)};
  cpus[1].online = false;
  const Topology topology = *Topology::make(cpus);
  EXPECT_EQ(topology.domains(DomainKind::llc).size(), 1u);
  EXPECT_EQ(topology.sockets().size(), 1u);
}

TEST(Topology, RefusesACpuTwice) {
  EXPECT_THAT(refusal({cpu(0, 0), cpu(1, 1), cpu(0, 2)}),
              StartsWith("cpus[2]: vCPU 0 is already at cpus[0]"));
}

TEST(Topology, RefusesACoreInTwoLlcsSocketsOrNodes) {
  EXPECT_THAT(refusal({cpu(0, 0, 0), cpu(1, 0, 1)}), StartsWith("cpus[1]: vCPU 1 shares core 0"));
  EXPECT_THAT(refusal({cpu(0, 0, 0), cpu(1, 0, std::nullopt)}), StartsWith("cpus[1]: vCPU 1 shares core 0"));
  EXPECT_THAT(refusal({cpu(0, 0, 0, 0), cpu(1, 0, 0, 1)}), StartsWith("cpus[1]: vCPU 1 shares core 0"));
  std::vector<Cpu> cpus{cpu(0, 0), cpu(1, 0)};
  cpus[1].numa = 1;
  EXPECT_THAT(refusal(cpus), StartsWith("cpus[1]: vCPU 1 shares core 0"));
}

TEST(Topology, RefusesAnLlcInTwoSockets) {
  EXPECT_THAT(refusal({cpu(0, 0, 0, 0), cpu(1, 1, 0, 1)}), StartsWith("cpus[1]: LLC 0 is on socket 1"));
}

TEST(Topology, RefusesAHostWithNothingUsable) {
  EXPECT_EQ(refusal({}), "cpus: no vCPU at all");
  std::vector<Cpu> cpus{cpu(0, 0)};
  cpus[0].online = false;
  EXPECT_EQ(refusal(cpus), "cpus: no vCPU is both online and allowed");
}

TEST(Topology, RefusesIndicesNoHostHas) {
  EXPECT_THAT(refusal({cpu(-1, 0)}), StartsWith("cpus[0]: vCPU -1"));
  EXPECT_THAT(refusal({cpu(kMaxCpu + 1, 0)}), StartsWith("cpus[0]: vCPU 8192"));
  EXPECT_THAT(refusal({cpu(0, -1)}), StartsWith("cpus[0]: core -1"));
  EXPECT_THAT(refusal({cpu(0, 0, -1)}), StartsWith("cpus[0]: LLC -1"));
  EXPECT_THAT(refusal({cpu(0, 0, 0, -1)}), StartsWith("cpus[0]: NUMA node -1"));
}

TEST(Topology, RefusesGpusThatCannotBe) {
  Gpu gpu;
  gpu.id = "0000:3b:00.0";
  gpu.memory_bytes = 10;
  EXPECT_THAT(refusal(eight(), {gpu, gpu}), StartsWith("gpus[1]: GPU 0000:3b:00.0 is already at gpus[0]"));
  Gpu full = gpu;
  full.memory_used_bytes = 11;
  EXPECT_EQ(refusal(eight(), {full}), "gpus[0]: 11 bytes used of 10");
  Gpu busy = gpu;
  busy.utilisation = 1.5;
  EXPECT_THAT(refusal(eight(), {busy}), StartsWith("gpus[0]: utilisation 1.5"));
  EXPECT_THAT(refusal(eight(), {Gpu{}}), StartsWith("gpus[0]: the id is empty"));
  Gpu shared = gpu;
  shared.other_processes = -1;
  EXPECT_EQ(refusal(eight(), {shared}), "gpus[0]: -1 other processes");
  Gpu linked = gpu;
  linked.links = {{.id = "b", .link = GpuLink::nv}, {.id = "a", .link = GpuLink::nv}};
  Gpu a = gpu;
  Gpu b = gpu;
  a.id = "a";
  b.id = "b";
  EXPECT_EQ(refusal(eight(), {a, b, linked}), "gpus[2]: the link to GPU a is not in ascending order");
}

TEST(Topology, GpusAreReplacedUnlessTheyCannotBe) {
  auto topology = Topology::make(eight()).value();
  Gpu gpu;
  gpu.id = "0000:3b:00.0";
  ASSERT_TRUE(topology.set_gpus({gpu}));
  EXPECT_EQ(topology.gpus(), (std::vector<Gpu>{gpu}));
  EXPECT_FALSE(topology.set_gpus({gpu, gpu}));
  EXPECT_EQ(topology.gpus(), (std::vector<Gpu>{gpu}));
}

TEST(Topology, OfAGpuNothingButItsIdNeedBeKnown) {
  Gpu gpu;
  gpu.id = "0000:3b:00.0";
  gpu.memory_used_bytes = 11;  // the total is not known
  EXPECT_TRUE(Topology::make(eight(), {gpu}));
}

TEST(Topology, DistancesAreOfSomeNodesInOrder) {
  const auto refusal = [](NumaDistances distances) {
    const auto topology = Topology::make(eight(), {}, std::move(distances));
    return topology ? "accepted" : topology.error().message();
  };
  EXPECT_EQ(refusal({}), "accepted");
  EXPECT_EQ(refusal({.nodes = {1, 5}, .values = {10, 20, 21, 10}}), "accepted");
  EXPECT_EQ(refusal({.nodes = {5, 1}, .values = {10, 20, 21, 10}}),
            "numa_distances: NUMA node 1 does not come after 5");
  EXPECT_EQ(refusal({.nodes = {1, 5}, .values = {10, 20, 21}}),
            "numa_distances: 3 values for 2 NUMA nodes; 4 are needed");
  EXPECT_EQ(refusal({.nodes = {-1}, .values = {10}}),
            "numa_distances: NUMA node -1 is not between 0 and 8191");
  EXPECT_EQ(refusal({.nodes = {1}, .values = {0}}),
            "numa_distances: distance 0 is not between 1 and 1000000");
  EXPECT_EQ(refusal({.nodes = std::vector<int>(65), .values = {}}),
            "numa_distances: 65 NUMA nodes; at most 64 can have distances");
}

TEST(Topology, TheDefaultOneIsEmpty) {
  const Topology topology;
  EXPECT_TRUE(topology.all().empty());
  EXPECT_TRUE(topology.window_order().empty());
  EXPECT_TRUE(topology.domains(DomainKind::llc).empty());
}

RC_GTEST_PROP(TopologyProperty, ViewsAgreeWithTheList, ()) {
  const Topology topology = *testing::topologies();
  CpuSet usable;
  for (const Cpu& entry : topology.cpus()) {
    RC_ASSERT(topology.all().contains(entry.cpu));
    RC_ASSERT(topology.find(entry.cpu) == &entry);
    if (entry.online && entry.allowed) usable.insert(entry.cpu);
  }
  RC_ASSERT(topology.usable() == usable);
  RC_ASSERT(topology.all().size() == topology.cpus().size());

  for (const DomainKind kind : {DomainKind::llc, DomainKind::socket}) {
    CpuSet covered;
    for (const Domain& domain : topology.domains(kind)) {
      RC_ASSERT(!domain.cpus.empty());
      RC_ASSERT(!covered.intersects(domain.cpus));
      covered |= domain.cpus;
      for (const int number : domain.cpus) RC_ASSERT(topology.core_threads(number).is_subset_of(domain.cpus));
    }
    RC_ASSERT(covered == usable);
  }
}

RC_GTEST_PROP(TopologyProperty, WindowOrderIsByRankThenCore, ()) {
  const Topology topology = *testing::topologies();
  std::vector<int> expected = topology.usable().to_vector();
  std::sort(expected.begin(), expected.end(), [&topology](int a, int b) {
    return std::pair(topology.smt_rank(a), topology.core_threads(a).first()) <
           std::pair(topology.smt_rank(b), topology.core_threads(b).first());
  });
  RC_ASSERT(topology.window_order() == expected);
}

}  // namespace
}  // namespace berth::model
