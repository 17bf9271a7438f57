// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/journal_shares.h"

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

}  // namespace
}  // namespace berth::daemon
