// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/budget.h"

#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using Owner = Budget::Owner;

class BudgetTest : public ::testing::Test {
 protected:
  // Whether `driver` got the memory; others give way until it has, or cannot.
  bool take(const Owner& driver, std::size_t bytes) {
    for (int i = 0; i < 1000; ++i) {
      const auto answer = budget.take(driver, bytes);
      EXPECT_LE(budget.taken(), budget.most());
      if (answer.granted) return true;
      if (!answer.gives_way) return false;
      gave_way.push_back(*answer.gives_way);
      budget.take(*answer.gives_way, 0);
    }
    ADD_FAILURE() << "no end";
    return false;
  }

  Budget budget{1000};
  std::vector<Owner> gave_way;
};

TEST_F(BudgetTest, OneUserMayHaveItAll) {
  budget.add({1, 1}, 1000);
  budget.add({2, 1}, 1000);
  EXPECT_TRUE(take({1, 1}, 900));
  EXPECT_FALSE(take({2, 1}, 101)) << "the first keeps what it has";
  EXPECT_TRUE(take({2, 1}, 100));
  EXPECT_TRUE(take({1, 1}, 500)) << "less is always granted";
  EXPECT_TRUE(take({2, 1}, 500));
  EXPECT_EQ(budget.taken(), 1000U);
  budget.remove({1, 1});
  EXPECT_EQ(budget.taken(), 500U);
  EXPECT_TRUE(gave_way.empty());
}

TEST_F(BudgetTest, AUserBeyondItsShareGivesWayToOneBelow) {
  for (int pid = 1; pid <= 10; ++pid) {
    budget.add({pid, 1}, 1000);
    EXPECT_TRUE(take({pid, 1}, pid < 10 ? 90 : 190));
  }
  budget.add({20, 1}, 1001);
  EXPECT_EQ(budget.share(), 500U);
  EXPECT_TRUE(take({20, 1}, 100));
  EXPECT_EQ(gave_way, (std::vector<Owner>{{10, 1}})) << "the largest";
  EXPECT_TRUE(take({20, 1}, 500));
  EXPECT_FALSE(take({20, 1}, 551)) << "no one gives way for more than the share";
  EXPECT_EQ(budget.taken_by(1001), 500U);
  EXPECT_EQ(budget.taken_by(1000), 450U);
}

TEST_F(BudgetTest, AUserWithinItsShareGivesNothing) {
  budget.add({1, 1}, 1000);
  budget.add({2, 1}, 1001);
  budget.add({3, 1}, std::nullopt);
  EXPECT_TRUE(take({1, 1}, 333));
  EXPECT_TRUE(take({2, 1}, 667)) << "as long as nobody needs it";
  EXPECT_FALSE(take({1, 1}, 334));
  EXPECT_TRUE(take({3, 1}, 333)) << "drivers of unknown users have a share as well";
  EXPECT_EQ(gave_way, (std::vector<Owner>{{2, 1}}));
  EXPECT_EQ(budget.taken_by(1000), 333U);
}

TEST_F(BudgetTest, ADriverThatItDoesNotKnowGetsNothing) { EXPECT_FALSE(take({1, 1}, 0)); }

}  // namespace
}  // namespace berth::spark
