// SPDX-License-Identifier: Apache-2.0
#include "os/worker.h"
#include "tests/patience.h"

#include <future>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::os {
namespace {

constexpr uid_t kMallory = 1001;
constexpr uid_t kAlice = 1000;

class AttemptsTest : public ::testing::Test {
 protected:
  ~AttemptsTest() override { over.set_value(); }
  // Whether the job was answered; it hangs until the end of the test.
  bool hangs(const std::string& of, uid_t user) {
    return !attempts.run(of, user, [until = until] { return until.wait(), 1; });
  }
  std::optional<int> answer(const std::string& of, uid_t user) {
    return attempts.run(of, user, [] { return 7; });
  }

  std::promise<void> over;
  std::shared_future<void> until = over.get_future().share();
  Attempts attempts;
};

TEST_F(AttemptsTest, OneThatHangsHoldsUpNoOther) {
  EXPECT_EQ(answer("a", kMallory), 7);
  EXPECT_TRUE(hangs("a", kMallory));
  EXPECT_EQ(answer("a", kMallory), std::nullopt) << "the same thing again";
  EXPECT_EQ(answer("b", kMallory), 7);
  EXPECT_EQ(answer("b", kAlice), 7);
}

TEST_F(AttemptsTest, OneUserTakesNoMoreThreadsThanItsShare) {
  for (std::size_t i = 0; i < Attempts::kMostOfUser; ++i)
    EXPECT_TRUE(hangs("m" + std::to_string(i), kMallory));
  EXPECT_EQ(answer("m", kMallory), std::nullopt);
  EXPECT_EQ(answer("a", kAlice), 7);
  EXPECT_EQ(answer("r", 0), 7);
}

TEST_F(AttemptsTest, ThereAreNoMoreThreadsThanTheLimit) {
  for (std::size_t i = 0; i < Attempts::kMost; ++i) EXPECT_TRUE(hangs("r" + std::to_string(i), 0));
  EXPECT_EQ(answer("a", kAlice), std::nullopt);
}

TEST_F(AttemptsTest, OneThatAnswersLaterIsTriedAgain) {
  std::promise<void> later;
  EXPECT_EQ(attempts.run("a", kAlice, [until = later.get_future().share()] { return until.wait(), 1; }),
            std::nullopt);
  later.set_value();
  EXPECT_TRUE(berth::test::eventually([&] { return answer("a", kAlice) == 7; }));
}

}  // namespace
}  // namespace berth::os
