// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/blame_ledger.h"

#include "ebpf/slices.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::daemon {
namespace {

using model::WorkloadClass;

constexpr std::uint64_t kWeb1 = 11;
constexpr std::uint64_t kWeb2 = 12;
constexpr std::uint64_t kDatabase = 13;
constexpr std::uint64_t kBatch = 14;
constexpr std::uint64_t kSystem = 2;

class BlameLedgerTest : public ::testing::Test {
 protected:
  using Wait = BlameLedger::Reading::Wait;
  void add(std::vector<Wait> waits, double stolen_ms = 0) {
    ledger.add({kWeb1, std::move(waits), stolen_ms}, workloads);
  }
  static Wait by(std::uint64_t id, double ms, const std::string& path,
                 std::vector<std::uint64_t> above = {}) {
    above.push_back(id);
    return {id, {std::move(above), path}, ms};
  }
  static double total(const Blames& blames) {
    return std::accumulate(blames.begin(), blames.end(), 0.0,
                           [](double sum, const auto& blame) { return sum + blame.second; });
  }

  BlameWorkloads workloads{
      {kWeb1, {"system.slice/web1", "web", WorkloadClass::latency_sensitive}},
      {kWeb2, {"system.slice/web2", "web", WorkloadClass::latency_sensitive}},
      {kDatabase, {"system.slice/database", "database", WorkloadClass::latency_sensitive}},
      {kBatch, {"batch.slice/job", "batch.slice/job", WorkloadClass::best_effort}}};
  BlameLedger ledger;
};

TEST_F(BlameLedgerTest, EachKindOfCulpritHasItsName) {
  add({by(kWeb1, 1, "system.slice/web1", {kSystem}), by(100, 2, "system.slice/web1/pool", {kSystem, kWeb1}),
       by(kWeb2, 4, "system.slice/web2", {kSystem}), by(kDatabase, 8, "system.slice/database", {kSystem}),
       by(101, 16, "batch.slice/job/task", {3, kBatch}), by(102, 32, "system.slice/cron", {kSystem}),
       by(1, 64, ""), by(BERTH_BY_KERNEL, 128, ""), by(BERTH_BY_INTERRUPTS, 256, ""),
       by(BERTH_BY_QUOTA, 512, ""), by(BERTH_BY_IDLE, 1024, ""), by(BERTH_BY_UNKNOWN, 2048, ""),
       by(103, 4096, "", {})});
  EXPECT_EQ(ledger.of("web"), (Blames{{{CulpritKind::self, ""}, 3},
                                      {{CulpritKind::instance, "system.slice/web2"}, 4},
                                      {{CulpritKind::latency_sensitive, "system.slice/database"}, 8},
                                      {{CulpritKind::best_effort, "batch.slice/job"}, 16},
                                      {{CulpritKind::cgroup, "system.slice/cron"}, 32},
                                      {{CulpritKind::cgroup, "/"}, 64},
                                      {{CulpritKind::kernel, ""}, 128},
                                      {{CulpritKind::interrupts, ""}, 256},
                                      {{CulpritKind::quota, ""}, 512},
                                      {{CulpritKind::idle, ""}, 1024},
                                      {{CulpritKind::unknown, ""}, 2048 + 4096}}));
  EXPECT_EQ(ledger.of("system.slice/web1"), ledger.of("web"));
  EXPECT_TRUE(ledger.of("database").empty());
}

TEST_F(BlameLedgerTest, WaitsOfAServiceAreThoseOfItsWorkloads) {
  add({by(kBatch, 1, "batch.slice/job")});
  ledger.add({kWeb2, {by(kBatch, 2, "batch.slice/job")}, 0}, workloads);
  ledger.add({kDatabase, {by(kBatch, 4, "batch.slice/job")}, 0}, workloads);
  EXPECT_EQ(ledger.of("web"), (Blames{{{CulpritKind::best_effort, "batch.slice/job"}, 3}}));
}

TEST_F(BlameLedgerTest, StolenTimeIsTakenOfThoseWhoRanAndNotOfTheQuota) {
  add({by(kBatch, 60, "batch.slice/job"), by(BERTH_BY_IDLE, 20, ""), by(BERTH_BY_QUOTA, 100, "")}, 40);
  EXPECT_EQ(ledger.of("web"), (Blames{{{CulpritKind::best_effort, "batch.slice/job"}, 30},
                                      {{CulpritKind::idle, ""}, 10},
                                      {{CulpritKind::quota, ""}, 100},
                                      {{CulpritKind::steal, ""}, 40}}));
}

TEST_F(BlameLedgerTest, MoreStolenTimeThanWaitsIsAllOfThem) {
  add({by(kBatch, 10, "batch.slice/job")}, 40);
  EXPECT_EQ(ledger.of("web"), (Blames{{{CulpritKind::steal, ""}, 10}}));
}

TEST_F(BlameLedgerTest, AUserWithThousandsOfGroupsTakesNoNamesOfOthers) {
  const std::string user = "user.slice/user-1000.slice/user@1000.service";
  std::vector<Wait> others{by(20'000, 0.01, "user.slice/user-1001.slice/session-1.scope"),
                           by(20'001, 0.01, "system.slice/cron"), by(kBatch, 0.01, "batch.slice/job")};
  for (std::uint64_t pod = 0; pod < 200; ++pod)
    others.push_back(by(30'000 + pod, 0.01, "kubepods.slice/burstable.slice/pod-" + std::to_string(pod)));
  // Beside each other, each below one of its own, and new ones in each reading.
  for (std::uint64_t reading = 0; reading < 20; ++reading) {
    std::vector<Wait> waits = others;
    for (std::uint64_t n = 0; n < 2000; ++n) {
      const std::string name = std::to_string(reading) + "-" + std::to_string(n);
      waits.push_back(by(100'000 + n, 1, user + (n % 2 == 0 ? "/" : "/in-" + name + "/") + name));
    }
    add(waits);
  }
  const Blames blames = ledger.of("web");
  EXPECT_LE(blames.size(), BlameLedger::kMostNamesOfOne);
  for (const Wait& wait : others) {
    const auto kind = wait.by == kBatch ? CulpritKind::best_effort : CulpritKind::cgroup;
    ASSERT_TRUE(blames.contains({kind, wait.group.path})) << wait.group.path;
    EXPECT_NEAR(blames.at({kind, wait.group.path}), 0.2, 1e-9);
  }
  // Nor does the user vanish: most of it has the name of the one above all of it.
  EXPECT_GT(blames.at({CulpritKind::cgroup, user}), 30'000);
  EXPECT_NEAR(total(blames), 40'000 + 20 * 0.01 * static_cast<double>(others.size()), 1e-6);
}

TEST_F(BlameLedgerTest, MoreServicesThanAnyCrowdsShareKeepTheirNamesWhereThereIsRoom) {
  std::vector<Wait> waits;
  for (std::uint64_t n = 0; n < 1000; ++n)
    waits.push_back(by(1000 + n, 1, "system.slice/" + std::to_string(n)));
  add(waits);
  EXPECT_EQ(ledger.of("web").size(), 1000U);
}

TEST_F(BlameLedgerTest, ManyThatWaitShareTheNames) {
  BlameWorkloads many;
  for (std::uint64_t n = 0; n < BlameLedger::kMostWaiting; ++n)
    many[n + 1] = {"a/" + std::to_string(n), "a", WorkloadClass::latency_sensitive};
  for (int reading = 0; reading < 2; ++reading) {
    for (const auto& [id, workload] : many) {
      std::vector<Wait> waits;
      for (std::uint64_t n = 0; n < 500; ++n)
        waits.push_back(by(1000 + n, 1, "crowd/" + std::to_string(id) + "-" + std::to_string(n)));
      ledger.add({id, std::move(waits), 0}, many);
    }
  }
  for (const auto& [id, workload] : many) {
    EXPECT_LE(ledger.of(workload.id).size(), BlameLedger::kLeastNamesOfOne + kCulpritKinds);
    EXPECT_EQ(total(ledger.of(workload.id)), 1000);
  }
  EXPECT_LE(ledger.of("a").size(), BlameLedger::kMostNamesOfOne + kCulpritKinds);
}

TEST_F(BlameLedgerTest, WorkloadsThatAreGoneMakeRoomForThoseThatWait) {
  for (std::uint64_t n = 0; n < 2 * BlameLedger::kMostWaiting; ++n) {
    const BlameWorkloads now{{n, {"a/" + std::to_string(n), "a", WorkloadClass::latency_sensitive}}};
    ledger.add({n, {by(BERTH_BY_KERNEL, 1, "")}, 0}, now);
  }
  const auto last = "a/" + std::to_string(2 * BlameLedger::kMostWaiting - 1);
  EXPECT_EQ(ledger.of(last).size(), 1U);
  EXPECT_LE(total(ledger.of("a")), static_cast<double>(BlameLedger::kMostWaiting));
}

TEST(BlameFold, TheHeaviestKeepTheirNamesAndTheRestCountsAbove) {
  const CulpritKind cgroup = CulpritKind::cgroup;
  const Blames blames{{{cgroup, "/"}, 1},
                      {{cgroup, "a"}, 2},
                      {{cgroup, "a/light"}, 4},
                      {{cgroup, "a/heavy"}, 64},
                      {{cgroup, "a/x/1"}, 8},
                      {{cgroup, "a/x/2"}, 8},
                      {{CulpritKind::best_effort, "b/job"}, 0.5},
                      {{CulpritKind::kernel, ""}, 3}};
  EXPECT_EQ(fold(blames, 7), blames);
  EXPECT_EQ(fold(blames, 6), (Blames{{{cgroup, "/"}, 1},
                                     {{cgroup, "a"}, 2},
                                     {{cgroup, "a/light"}, 4},
                                     {{cgroup, "a/heavy"}, 64},
                                     {{cgroup, "a/x"}, 16},
                                     {{CulpritKind::best_effort, "b/job"}, 0.5},
                                     {{CulpritKind::kernel, ""}, 3}}));
  EXPECT_EQ(fold(blames, 4), (Blames{{{cgroup, "/"}, 1},
                                     {{cgroup, "a"}, 22},
                                     {{cgroup, "a/heavy"}, 64},
                                     {{CulpritKind::best_effort, "b/job"}, 0.5},
                                     {{CulpritKind::kernel, ""}, 3}}));
  EXPECT_EQ(fold(blames, 1), (Blames{{{cgroup, "/"}, 87.5}, {{CulpritKind::kernel, ""}, 3}}));
}

// Whether the wait of `culprit` may count for `name`.
bool is_above(const std::string& name, const std::string& culprit) {
  return name == "/" || name == culprit || culprit.starts_with(name + "/");
}

RC_GTEST_PROP(BlameFold, LosesNothingAndLetsNobodyPayForACrowdElsewhere, ()) {
  Blames blames;
  const auto names = *rc::gen::container<std::vector<std::vector<int>>>(
      rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 5)));
  for (const auto& components : names) {
    std::string name;
    for (const int component : components) name += (name.empty() ? "" : "/") + std::to_string(component);
    const auto kind = *rc::gen::element(CulpritKind::best_effort, CulpritKind::cgroup);
    blames[{kind, name.empty() ? "/" : name}] += *rc::gen::inRange(1, 100);
  }
  const auto most = *rc::gen::inRange<std::size_t>(1, 30);
  const Blames folded = fold(blames, most);
  RC_ASSERT(folded.size() <= most);
  // Of each cgroup: all waits below it count for it, one below or one above, and none is added.
  double sum = 0;
  for (const auto& [culprit, ms] : blames) sum += ms;
  for (const auto& [culprit, ms] : folded) {
    sum -= ms;
    double below = 0;
    for (const auto& [was, was_ms] : blames) below += is_above(culprit.name, was.name) ? was_ms : 0;
    RC_ASSERT(ms <= below);
  }
  RC_ASSERT(sum == 0);
  // The outermost cgroups share evenly: one with fewer names than its part keeps all of them.
  std::map<std::string, std::size_t> outermost;
  for (const auto& [culprit, ms] : blames) ++outermost[culprit.name.substr(0, culprit.name.find('/'))];
  for (const auto& [culprit, ms] : blames) {
    const std::string first = culprit.name.substr(0, culprit.name.find('/'));
    if (culprit.name == "/" || (outermost.at(first) + 2) * outermost.size() > most) continue;
    const auto found = folded.find(culprit);
    RC_ASSERT(found != folded.end() && found->second == ms);
  }
}

TEST_F(BlameLedgerTest, SecondsByKindOutliveTheNames) {
  add({by(kBatch, 1500, "batch.slice/job"), by(BERTH_BY_KERNEL, 500, "")});
  ledger.clear();
  EXPECT_TRUE(ledger.of("web").empty());
  EXPECT_DOUBLE_EQ(ledger.seconds()[static_cast<std::size_t>(CulpritKind::best_effort)], 1.5);
  EXPECT_DOUBLE_EQ(ledger.seconds()[static_cast<std::size_t>(CulpritKind::kernel)], 0.5);
}

}  // namespace
}  // namespace berth::daemon
