// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/blame_ledger.h"

#include "ebpf/slices.h"

#include <numeric>

#include <gtest/gtest.h>

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
  std::vector<Wait> waits;
  for (std::uint64_t n = 0; n < 8000; ++n)
    waits.push_back(by(1000 + n, 1, "user.slice/user-1000.slice/user@1000.service/" + std::to_string(n)));
  waits.push_back(by(20'000, 1, "user.slice/user-1001.slice/session-1.scope"));
  waits.push_back(by(20'001, 1, "system.slice/cron"));
  add(waits);
  const Blames blames = ledger.of("web");
  EXPECT_LE(blames.size(), BlameLedger::kMostBelowSecond + 3);
  EXPECT_EQ(blames.at({CulpritKind::cgroup, "user.slice/user-1000.slice"}),
            8000 - static_cast<double>(BlameLedger::kMostBelowSecond));
  EXPECT_EQ(blames.at({CulpritKind::cgroup, "user.slice/user-1001.slice/session-1.scope"}), 1);
  EXPECT_EQ(blames.at({CulpritKind::cgroup, "system.slice/cron"}), 1);
  EXPECT_EQ(total(blames), 8002);
}

TEST_F(BlameLedgerTest, GroupsOfTheSecondLevelHaveALimitToo) {
  std::vector<Wait> waits;
  for (std::uint64_t n = 0; n < 8000; ++n) waits.push_back(by(1000 + n, 1, "crowd/" + std::to_string(n)));
  add(waits);
  EXPECT_EQ(ledger.of("web").size(), BlameLedger::kMostBelowFirst + 1);
  EXPECT_EQ(total(ledger.of("web")), 8000);
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

TEST_F(BlameLedgerTest, SecondsByKindOutliveTheNames) {
  add({by(kBatch, 1500, "batch.slice/job"), by(BERTH_BY_KERNEL, 500, "")});
  ledger.clear();
  EXPECT_TRUE(ledger.of("web").empty());
  EXPECT_DOUBLE_EQ(ledger.seconds()[static_cast<std::size_t>(CulpritKind::best_effort)], 1.5);
  EXPECT_DOUBLE_EQ(ledger.seconds()[static_cast<std::size_t>(CulpritKind::kernel)], 0.5);
}

}  // namespace
}  // namespace berth::daemon
