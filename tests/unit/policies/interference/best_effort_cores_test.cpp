// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/best_effort_cores.h"

#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/seeds.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using model::BestEffortCores;
using testing::cpus;

constexpr double kNow = 1000;

std::map<int, BestEffortCores> cores_on(const Node& node, double use,
                                        const std::map<int, BestEffortCores>& before = {},
                                        const BestEffortDemand& demand = {},
                                        const model::CpuSet& reserved = {}) {
  const Occupancy nobody(node, {});
  return best_effort_cores(nobody, demand, {{0, use}}, reserved, before, kNow);
}

}  // namespace

TEST(BestEffortCores, AreAsManyAsOneAndAHalfTimesTheUseLeaves) {
  const std::vector<int> threads{2, 2, 2, 2};
  EXPECT_EQ(next_cores(threads, 0, {}, kNow), 4);
  EXPECT_EQ(next_cores(threads, 0.1, {}, kNow), 3);
  EXPECT_EQ(next_cores(threads, 2, {}, kNow), 2);
  EXPECT_EQ(next_cores(threads, 4, {}, kNow), 1);
  EXPECT_EQ(next_cores(threads, 100, {}, kNow), 0);
}

TEST(BestEffortCores, FallAtOnceAndGrowByOneAfterACalm) {
  const std::vector<int> threads{2, 2, 2, 2};
  EXPECT_EQ(next_cores(threads, 5, BestEffortCores{.cores = 4}, kNow), 0);
  EXPECT_EQ(next_cores(threads, 0, BestEffortCores{.cores = 1}, kNow), 2);
  const BestEffortCores fallen{.cores = 1, .fell_at = kNow - kCalm_s + 1};
  EXPECT_EQ(next_cores(threads, 0, fallen, kNow), 1);
  EXPECT_EQ(next_cores(threads, 0, fallen, kNow + 1), 2);
}

TEST(BestEffortCores, AClockThatWentBackHoldsNothing) {
  EXPECT_EQ(next_cores({2, 2}, 0, BestEffortCores{.cores = 0, .fell_at = kNow + 3}, kNow), 1);
}

TEST(BestEffortCores, AreWholeAndTheLastOfTheDomain) {
  const Node node(testing::host({}), model::DomainKind::llc);
  const auto found = cores_on(node, 2);
  EXPECT_EQ(found.at(0), (BestEffortCores{.cpus = cpus("2-3,6-7"), .cores = 2, .fell_at = kNow}));
}

TEST(BestEffortCores, RememberWhenOneWasTakenAway) {
  const Node node(testing::host({}), model::DomainKind::llc);
  EXPECT_EQ(cores_on(node, 2, {{0, {.cores = 3, .fell_at = 5}}}).at(0).fell_at, kNow);
  EXPECT_EQ(cores_on(node, 2, {{0, {.cores = 1, .fell_at = 5}}}).at(0).fell_at, 5);
}

TEST(BestEffortCores, ComeBackAtOnceInADomainThatServicesLeftLongAgo) {
  const Node node(testing::host({}), model::DomainKind::llc);
  const Occupancy nobody(node, {});
  const auto after_s = [&](double seconds) {
    return best_effort_cores(nobody, {}, {}, {}, {{0, {.cores = 1, .fell_at = kNow}}}, kNow + seconds);
  };
  EXPECT_EQ(after_s(kLeft_s - 1).at(0).cores, 1);
  EXPECT_EQ(after_s(kLeft_s).at(0).cores, 4);
  EXPECT_EQ(after_s(-1).at(0).cores, 4) << "the clock was set back";
  EXPECT_TRUE(best_effort_cores(nobody, {}, {}, {}, {{0, {.cores = 4}}}, kNow).empty());
}

TEST(BestEffortCores, KeepTheLeastOfTheHost) {
  const Node node(testing::host({}), model::DomainKind::llc);
  EXPECT_EQ(cores_on(node, 100).at(0).cpus, cpus("3,7"));
  EXPECT_EQ(cores_on(node, 100, {}, {.min_cpus = 3}).at(0).cpus, cpus("2-3,6-7"));
}

TEST(BestEffortCores, ThatAreTheLeastOfTheHostDoNotFall) {
  const Node node(testing::host({}), model::DomainKind::llc);
  EXPECT_EQ(cores_on(node, 100, {{0, {.cores = 1, .fell_at = 5}}}).at(0).fell_at, 5);
}

TEST(BestEffortCores, HaveEveryReservedVcpu) {
  const Node node(testing::host({}), model::DomainKind::llc);
  EXPECT_EQ(cores_on(node, 2, {}, {}, cpus("0,4")).at(0).cpus, cpus("0,3-4,7"));
}

TEST(BestEffortCores, AreTheSlowOnesOfAHybridProcessor) {
  auto list = testing::cpus_of({.threads_per_core = 1});
  for (model::Cpu& cpu : list) cpu.efficiency = cpu.cpu < 2 ? 0 : 1;
  const Node node(model::Topology::make(list).value(), model::DomainKind::llc);
  EXPECT_EQ(cores_on(node, 1).at(0).cpus, cpus("0-1"));
}

TEST(BestEffortCores, LeaveOutWhatInstancesOwn) {
  const Node node(testing::host({}), model::DomainKind::llc);
  Occupancy owned(node, {});
  owned.add({.vcpus = 2, .pressure = 0.5, .model = {}, .region = 0, .cpus = node.positions(cpus("3,7"))});
  const auto found = best_effort_cores(owned, {}, {{0, 2}}, {}, {}, kNow);
  EXPECT_EQ(found.at(0).cpus, cpus("2,6"));
}

TEST(BestEffortCores, AreNotLimitedInADomainWithoutServices) {
  const Node node(testing::host({.llcs_per_socket = 2, .cores_per_llc = 2}), model::DomainKind::llc);
  const Occupancy nobody(node, {});
  const auto found = best_effort_cores(nobody, {}, {{1, 1}}, {}, {}, kNow);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.at(1).cpus, cpus("3,7"));
}

// Whatever came before.
RC_GTEST_PROP(BestEffortCores, AreABeginningOfOneOrder, ()) {
  testing::Draws draws(*testing::any_seed());
  const Node node(testing::host({.llcs_per_socket = 2, .cores_per_llc = draws.number(1, 6)}),
                  model::DomainKind::llc);
  Occupancy owned(node, {});
  for (int position = 0; position < node.size(); ++position) {
    if (draws.chance(0.2))
      owned.add(
          {.vcpus = 1, .pressure = 0.5, .model = {}, .region = node.domain(position), .cpus = {position}});
  }
  const int min_cpus = draws.number(1, 3);
  std::map<int, BestEffortCores> before;
  if (draws.chance(0.7)) before[0] = {.cores = draws.number(0, 7), .fell_at = kNow - draws.number(-2, 10)};
  const double use = 4 * draws.fraction();
  const auto found = best_effort_cores(owned, {.min_cpus = min_cpus}, {{0, use}}, {}, before, kNow);

  // The unowned threads of each core of the domain.
  std::map<int, model::CpuSet> cores;
  int elsewhere = 0;
  for (int position = 0; position < node.size(); ++position) {
    if (!owned.unowned(position)) continue;
    if (node.domain(position) != 0) {
      ++elsewhere;
    } else {
      cores[node.core(position)].insert(node.cpu(position));
    }
  }
  std::vector<model::CpuSet> order;
  std::size_t all = 0;
  for (const auto& [core, threads] : cores) {
    order.insert(order.begin(), threads);
    all += threads.size();
  }
  const BestEffortCores& got = found.at(0);
  model::CpuSet beginning;
  for (int i = 0; i < got.cores; ++i) beginning |= order[i];
  RC_ASSERT(beginning == got.cpus);
  const auto left = static_cast<double>(all - got.cpus.size());
  const bool least = static_cast<int>(got.cpus.size()) + elsewhere - min_cpus < 2;
  RC_ASSERT(left >= kServicesShare * use - 1e-6 || got.cores == 0 || least);
  if (!before.empty() && !least) RC_ASSERT(got.cores <= before[0].cores + 1);
}

}  // namespace berth::policies
