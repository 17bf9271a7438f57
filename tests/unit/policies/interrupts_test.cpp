// SPDX-License-Identifier: Apache-2.0
#include "policies/interrupts.h"

#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/seeds.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {
namespace {

using model::CpuSet;
using testing::cpus;
using testing::Draws;

// Two sockets and NUMA nodes of four vCPUs each.
model::Topology two_nodes() {
  std::vector<model::Cpu> all;
  for (int cpu = 0; cpu < 8; ++cpu)
    all.push_back(
        {.cpu = cpu, .core = cpu / 2, .llc = cpu / 4, .numa = cpu / 4, .socket = cpu / 4, .efficiency = {}});
  return *model::Topology::make(std::move(all));
}

TEST(Interrupts, AMaskLosesTheOwnedVcpus) {
  EXPECT_EQ(off_owned(cpus("0-7"), cpus("2-3"), {}, two_nodes()), cpus("0-1,4-7"));
}

TEST(Interrupts, StayWhereNoVcpuIsOwned) {
  EXPECT_EQ(off_owned(cpus("0-1"), cpus("2-3"), {}, two_nodes()), std::nullopt);
}

TEST(Interrupts, WhollyOnOwnedVcpusGoToTheRestOfTheirNode) {
  EXPECT_EQ(off_owned(cpus("6"), cpus("6-7"), {}, two_nodes()), cpus("4-5"));
}

TEST(Interrupts, GoToAnotherNodeIfTheirsIsOwned) {
  EXPECT_EQ(off_owned(cpus("6"), cpus("4-7"), {}, two_nodes()), cpus("0-3"));
}

TEST(Interrupts, GoToVcpusOfOtherProgramsOnlyIfThereAreNoMore) {
  EXPECT_EQ(off_owned(cpus("6"), cpus("6-7"), cpus("4"), two_nodes()), cpus("5"));
  EXPECT_EQ(off_owned(cpus("6"), cpus("6-7"), cpus("4-5"), two_nodes()), cpus("0-3"));
  EXPECT_EQ(off_owned(cpus("6"), cpus("6-7"), cpus("0-5"), two_nodes()), cpus("4-5"));
}

TEST(Interrupts, StayWhereAllVcpusAreOwned) {
  EXPECT_EQ(off_owned(cpus("6"), cpus("0-7"), {}, two_nodes()), std::nullopt);
}

TEST(Interrupts, OnlyPlacesOfRunningInstancesCount) {
  auto snapshot = testing::snapshot_of(two_nodes());
  snapshot.workloads.push_back(testing::latency_sensitive("web", 2));
  model::Plan plan;
  EXPECT_EQ(owned_by_instances(plan, snapshot), CpuSet());
  plan.findings.interference.emplace();
  plan.findings.interference->instances["web"].cpus = cpus("2-3");
  plan.findings.interference->instances["pending"].cpus = cpus("4-5");
  EXPECT_EQ(owned_by_instances(plan, snapshot), cpus("2-3"));
  snapshot.workloads.front().cpus = cpus("6-7");
  EXPECT_EQ(owned_by_instances(plan, snapshot), cpus("2-3,6-7")) << "it is there until it has moved";
  snapshot.workloads.front().shares = true;
  EXPECT_EQ(owned_by_instances(plan, snapshot), cpus("2-3")) << "that was its home";
}

struct Case {
  model::Topology topology;
  CpuSet online;
  CpuSet cpus;
  CpuSet owned;
  CpuSet of_others;
};

CpuSet random_set(Draws& draws, int count, double share) {
  CpuSet set;
  for (int cpu = 0; cpu < count; ++cpu) {
    if (draws.chance(share)) set.insert(cpu);
  }
  return set;
}

Case random_case(std::uint64_t seed) {
  Draws draws(seed);
  Case drawn;
  const int count = draws.number(1, 24);
  const int per_node = draws.number(1, 8);
  const int per_socket = per_node * draws.number(1, 2);
  std::vector<model::Cpu> all;
  for (int cpu = 0; cpu < count; ++cpu) {
    const bool online = cpu == 0 || draws.chance(0.9);
    if (online) drawn.online.insert(cpu);
    all.push_back({.cpu = cpu,
                   .core = cpu,
                   .llc = std::nullopt,
                   .numa = cpu / per_node,
                   .socket = cpu / per_socket,
                   .online = online,
                   .efficiency = {}});
  }
  drawn.topology = *model::Topology::make(std::move(all));
  // A mask may name vCPUs that the host lacks.
  drawn.cpus = random_set(draws, count + 2, draws.chance(0.5) ? 0.1 : 0.7);
  drawn.owned = random_set(draws, count, draws.chance(0.3) ? 0.9 : 0.3);
  drawn.of_others = random_set(draws, count, 0.2);
  return drawn;
}

RC_GTEST_PROP(InterruptsProperty, NoneIsLostAndNoneStaysOnAnOwnedVcpuThatItNeedNot, ()) {
  const Case drawn = random_case(*testing::any_seed());
  const auto to = off_owned(drawn.cpus, drawn.owned, drawn.of_others, drawn.topology);
  const CpuSet free = drawn.online - drawn.owned;
  if (!to) {
    RC_ASSERT(!drawn.cpus.intersects(drawn.owned) || free.empty());
    return;
  }
  RC_ASSERT(to->intersects(drawn.online));
  RC_ASSERT(!to->intersects(drawn.owned));
  // It keeps all that it may keep, and gets no more.
  if (drawn.cpus.intersects(free)) RC_ASSERT(*to == drawn.cpus - drawn.owned);
}

RC_GTEST_PROP(InterruptsProperty, AMovedOneGoesNoFartherThanItMust, ()) {
  const Case drawn = random_case(*testing::any_seed());
  const auto to = off_owned(drawn.cpus, drawn.owned, drawn.of_others, drawn.topology);
  const CpuSet free = drawn.online - drawn.owned;
  if (!to || drawn.cpus.intersects(free)) return;
  const CpuSet wanted = (free - drawn.of_others).empty() ? free : free - drawn.of_others;
  // How far a vCPU is from the nearest one that the interrupt had: 0 in the node, 1 in the socket, 2 beyond.
  const auto distance = [&](int cpu) {
    int least = 2;
    for (const int had : drawn.cpus) {
      const model::Cpu* from = drawn.topology.find(had);
      const model::Cpu* at = drawn.topology.find(cpu);
      if (from == nullptr) continue;
      if (from->numa == at->numa) return 0;
      if (from->socket == at->socket) least = 1;
    }
    return least;
  };
  int nearest = 2;
  for (const int cpu : wanted) nearest = std::min(nearest, distance(cpu));
  for (const int cpu : wanted) RC_ASSERT(to->contains(cpu) == (distance(cpu) <= nearest));
}

RC_GTEST_PROP(InterruptsProperty, TheAnswerStaysTheSameOnceItIsInForce, ()) {
  const Case drawn = random_case(*testing::any_seed());
  const auto to = off_owned(drawn.cpus, drawn.owned, drawn.of_others, drawn.topology);
  if (to) RC_ASSERT(off_owned(*to, drawn.owned, drawn.of_others, drawn.topology) == std::nullopt);
}

}  // namespace
}  // namespace berth::policies
