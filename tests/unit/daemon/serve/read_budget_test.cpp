// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/read_budget.h"

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

constexpr uid_t kAlice = 1000;
constexpr uid_t kMallory = 1001;

TEST(ReadBudget, AUserHasAShareThatFillsUpInASecond) {
  ReadBudget budget;
  EXPECT_EQ(budget.take(kAlice, ReadBudget::kOfUser, 100), std::nullopt);
  const auto wait = budget.take(kAlice, ReadBudget::kOfUser / 2, 100);
  ASSERT_TRUE(wait);
  EXPECT_DOUBLE_EQ(*wait, 0.5);
  EXPECT_NE(budget.take(kAlice, ReadBudget::kOfUser / 2, 100.25), std::nullopt);
  EXPECT_EQ(budget.take(kAlice, ReadBudget::kOfUser / 2, 100.5), std::nullopt);
  EXPECT_NE(budget.take(kAlice, ReadBudget::kOfUser, 101), std::nullopt);
  EXPECT_EQ(budget.take(kAlice, ReadBudget::kOfUser, 102), std::nullopt) << "it does not grow beyond that";
}

TEST(ReadBudget, OneUserLeavesTheOthersTheirs) {
  ReadBudget budget;
  for (int i = 0; i < 1000; ++i) (void)budget.take(kMallory, 10, 100);
  EXPECT_NE(budget.take(kMallory, 10, 100), std::nullopt);
  EXPECT_EQ(budget.take(kAlice, 10, 100), std::nullopt);
}

TEST(ReadBudget, AllUsersTogetherHaveALimitAndRootHasNone) {
  ReadBudget budget;
  double taken = 0;
  for (uid_t user = 1; user < 100; ++user)
    if (!budget.take(user, 100, 100)) taken += 100;
  EXPECT_DOUBLE_EQ(taken, ReadBudget::kOfAll);
  EXPECT_EQ(budget.take(0, ReadBudget::kOfAll, 100), std::nullopt);
}

TEST(ReadBudget, ACallThatIsWorthMoreThanTheShareIsServedOnceASecond) {
  ReadBudget budget;
  EXPECT_EQ(budget.take(kAlice, 100 * ReadBudget::kOfUser, 100), std::nullopt);
  EXPECT_DOUBLE_EQ(budget.take(kAlice, 100 * ReadBudget::kOfUser, 100).value_or(0), 1);
}

TEST(ReadBudget, SomeCallsAreAnsweredWithoutAQuestionWhoAsks) {
  ReadBudget budget;
  const auto taken = [&budget](double now) {
    int count = 0;
    while (budget.take_unasked(1, now)) ++count;
    return count;
  };
  EXPECT_EQ(taken(100), static_cast<int>(ReadBudget::kUnasked));
  EXPECT_EQ(taken(100.5), static_cast<int>(ReadBudget::kUnasked / 2));
  // One large document a second is such a call, and takes nothing of a user's own share.
  EXPECT_TRUE(budget.take_unasked(10 * ReadBudget::kUnasked, 102));
  EXPECT_FALSE(budget.take_unasked(1, 102));
  EXPECT_EQ(budget.take(1000, ReadBudget::kOfUser, 102), std::nullopt);
}

}  // namespace
}  // namespace berth::daemon
