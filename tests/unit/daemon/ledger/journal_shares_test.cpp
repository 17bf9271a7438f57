// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/journal_shares.h"

#include "daemon/messenger.h"
#include "tests/unit/daemon/fake_node.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

constexpr uid_t kAlice = 1000;
constexpr uid_t kMallory = 1001;

int taken(JournalShares& shares, std::optional<uid_t> user, double now) {
  int count = 0;
  for (int i = 0; i < 10 * JournalShares::kMost; ++i) count += shares.take(user, now) ? 1 : 0;
  return count;
}

TEST(JournalShares, OneUsersWorkloadsHaveALimitAndLeaveTheOthersTheirs) {
  JournalShares shares;
  EXPECT_EQ(taken(shares, kMallory, 100), JournalShares::kMost);
  EXPECT_EQ(taken(shares, kMallory, 100 + JournalShares::kPeriod_s / 2), 0);
  EXPECT_EQ(taken(shares, kAlice, 100), JournalShares::kMost);
  EXPECT_EQ(taken(shares, JournalShares::kUnknown, 100), JournalShares::kMost);
  EXPECT_EQ(taken(shares, kMallory, 100 + JournalShares::kPeriod_s), JournalShares::kMost);
}

TEST(JournalShares, RootsWorkloadsHaveNoLimit) {
  JournalShares shares;
  EXPECT_EQ(taken(shares, std::nullopt, 100), 10 * JournalShares::kMost);
}

// Of a workload that ended, the user is not known any more.
TEST(JournalShares, TheDecisionLogHasEachEvictionWhateverElseAUsersWorkloadsBring) {
  const test::FakeNode node;
  const auto setup = find_setup(node.options(), node.settings(), test::fake_clock([] { return 1000.0; }));
  ASSERT_TRUE(setup);
  const auto observer = Observer::start(node.hierarchy(), node.settings().rules, node.proc(), node.sys(), 60);
  ASSERT_TRUE(observer);
  Messenger messenger(**setup, **observer);
  const std::size_t most = JournalShares::kMost;
  LogEntry entry;
  entry.time = 1000;
  entry.workload = "user/ended";
  entry.result = "applied";
  entry.kind = "pin";
  std::vector<LogEntry> entries(3 * most, entry);
  entry.kind = "evict";
  entries.insert(entries.end(), most, entry);
  messenger.record(entries);
  ASSERT_TRUE(test::eventually([&] {
    messenger.log().go_on();
    return !messenger.log().problem();
  }));
  std::size_t pins = 0;
  std::size_t evictions = 0;
  for (const LogEntry& kept : messenger.log().newest(0)) ++(kept.kind == "evict" ? evictions : pins);
  EXPECT_EQ(evictions, most);
  EXPECT_LT(pins, 3 * most);
}

}  // namespace
}  // namespace berth::daemon
