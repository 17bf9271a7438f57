// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/learning/neighbours.h"

#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/seeds.h"
#include "tests/unit/rounding.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

// Two domains of `cores` cores with `threads` threads each: vCPU = thread * all cores + core.
model::Topology two_domains(int cores, int threads) {
  std::vector<model::Cpu> cpus;
  for (int thread = 0; thread < threads; ++thread) {
    for (int core = 0; core < 2 * cores; ++core) {
      cpus.push_back({.cpu = thread * 2 * cores + core,
                      .core = core,
                      .llc = core / cores,
                      .socket = 0,
                      .efficiency = {}});
    }
  }
  return *model::Topology::make(cpus);
}

constexpr auto kLlc = model::DomainKind::llc;

}  // namespace

TEST(Neighbours, SiblingsAndTheRestOfTheDomainAreCountedApart) {
  const auto topology = two_domains(4, 2);  // siblings are n and n + 8; domains 0-3,8-11 and 4-7,12-15
  Neighbours neighbours(topology, kLlc);
  const Use own{.cores = 1.5, .misses_per_s = 100};
  neighbours.add({0, 1}, own);
  neighbours.add({8}, {.cores = 0.5, .misses_per_s = 600});    // beside vCPU 0
  neighbours.add({2, 10}, {.cores = 1, .misses_per_s = 200});  // the same cache
  neighbours.add({4, 5}, {.cores = 2, .misses_per_s = 5000});  // the other one
  const auto seen = neighbours.around({0, 1}, 2, own);
  ASSERT_TRUE(seen);
  EXPECT_DOUBLE_EQ(seen->sc, 0.25);
  EXPECT_DOUBLE_EQ(seen->ss, 1.0 / 4);  // two of the four vCPUs 2, 3, 10, 11 are half busy
  EXPECT_DOUBLE_EQ(*seen->llc, 800.0 / 8);
}

TEST(Neighbours, AnInstanceIsNoNeighbourOfItself) {
  const auto topology = two_domains(2, 2);
  Neighbours neighbours(topology, kLlc);
  neighbours.add({0, 4}, {.cores = 2, .misses_per_s = {}});
  const auto seen = neighbours.around({0, 4}, 2, {.cores = 2, .misses_per_s = {}});
  EXPECT_EQ(seen->sc, 0);
  EXPECT_EQ(seen->ss, 0);
  EXPECT_FALSE(seen->llc);
}

TEST(Neighbours, WithoutAPinItIsOnEachVcpuForTheSameTime) {
  const auto topology = two_domains(2, 1);
  Neighbours neighbours(topology, kLlc);
  const Use own{.cores = 1, .misses_per_s = {}};
  neighbours.add(topology.usable(), own);
  neighbours.add({0}, {.cores = 1, .misses_per_s = {}});
  // Beside vCPU 0 is it only on vCPU 1.
  EXPECT_DOUBLE_EQ(neighbours.around(topology.usable(), 1, own)->ss, 0.25);
}

TEST(Neighbours, NothingIsSeenWhereNoVcpuIsUsable) {
  Neighbours neighbours(two_domains(2, 1), kLlc);
  EXPECT_FALSE(neighbours.around({9}, 1, {}));
  neighbours.add({9}, {.cores = 1, .misses_per_s = {}});
  EXPECT_EQ(neighbours.around({0}, 1, {})->ss, 0);
}

// The definition, loop by loop.
RC_GTEST_PROP(Neighbours, AreCountedAsThePageSays, ()) {
  testing::Draws draws(*testing::any_seed());
  const auto topology = two_domains(draws.number(1, 3), draws.number(1, 2));
  const int count = static_cast<int>(topology.cpus().size());
  struct One {
    model::CpuSet where;
    Use use;
  };
  std::vector<One> all;
  for (int i = draws.number(1, 6); i > 0; --i) {
    One one;
    for (int cpu = 0; cpu < count; ++cpu) {
      if (draws.chance(0.4)) one.where.insert(cpu);
    }
    if (one.where.empty()) one.where.insert(0);
    one.use = {.cores = draws.fraction() * static_cast<double>(one.where.size()),
               .misses_per_s = 1e6 * draws.fraction()};
    all.push_back(one);
  }
  Neighbours neighbours(topology, kLlc);
  for (const auto& one : all) neighbours.add(one.where, one.use);
  const int vcpus = draws.number(1, 3);
  const auto seen = *neighbours.around(all[0].where, vcpus, all[0].use);

  std::vector<double> load(static_cast<std::size_t>(count));
  std::vector<double> misses(static_cast<std::size_t>(count));
  for (std::size_t i = 1; i < all.size(); ++i) {
    for (const int cpu : all[i].where) {
      load[cpu] += all[i].use.cores / static_cast<double>(all[i].where.size());
      misses[cpu] += *all[i].use.misses_per_s / static_cast<double>(all[i].where.size());
    }
  }
  for (double& busy : load) busy = std::min(1.0, busy);
  const auto& cpus = topology.cpus();
  const bool in_place = all[0].where.size() <= static_cast<std::size_t>(vcpus);
  double sc = 0;
  double llc = 0;
  double ss_in_turn = 0;
  double ss = 0;
  int outside = 0;
  for (const int own : all[0].where) {
    double domain_load = 0;
    double domain_misses = 0;
    int domain_outside = 0;
    int domain_size = 0;
    for (const auto& cpu : cpus) {
      const bool sibling = cpu.core == cpus[own].core;
      if (sibling && cpu.cpu != own) sc += load[cpu.cpu];
      if (cpu.llc != cpus[own].llc) continue;
      ++domain_size;
      domain_misses += misses[cpu.cpu];
      if (sibling) continue;
      domain_load += load[cpu.cpu];
      ++domain_outside;
    }
    if (domain_outside > 0) ss_in_turn += domain_load / domain_outside;
    llc += domain_misses / domain_size;
  }
  for (const auto& cpu : cpus) {
    bool own_core = false;
    bool own_domain = false;
    for (const int own : all[0].where) {
      own_core = own_core || cpus[own].core == cpu.core;
      own_domain = own_domain || cpus[own].llc == cpu.llc;
    }
    if (own_core || !own_domain) continue;
    ss += load[cpu.cpu];
    ++outside;
  }
  const auto size = static_cast<double>(all[0].where.size());
  const double expected_ss = !in_place ? ss_in_turn / size : outside > 0 ? ss / outside : 0;
  // On each vCPU the shares of all workloads are added, and the instance's own one is taken off again. A
  // workload has 1 core and a million misses on a vCPU at most.
  const auto workloads = static_cast<double>(all.size());
  const double operations = 4 * workloads * count;
  const double bound = berth::testing::rounding(operations, workloads * count);
  RC_ASSERT(std::abs(seen.sc - sc / size) <= bound);
  RC_ASSERT(std::abs(seen.ss - expected_ss) <= bound);
  RC_ASSERT(std::abs(*seen.llc - llc / size) <= 1e6 * bound);
}

}  // namespace berth::policies
