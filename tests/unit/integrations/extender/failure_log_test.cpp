// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/http_message.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::extender {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ExtenderFailureLog : public testing::Test {
 protected:
  std::vector<std::string> lines_;
  FailureLog log_{[this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(ExtenderFailureLog, SaysTheFirstOfEachKindAtOnce) {
  log_.add(Failure::snapshot, "127.0.0.1:5", "no host", 1);
  log_.add(Failure::question, "127.0.0.1:6", "", 1);
  EXPECT_THAT(lines_, ElementsAre("127.0.0.1:5: the snapshot is refused: no host",
                                  "127.0.0.1:6: the scheduler's question cannot be read"));
}

TEST_F(ExtenderFailureLog, CountsTheOthersOfAMinute) {
  for (int i = 0; i < 100; ++i) log_.add(Failure::snapshot, "a", std::to_string(i), 1);
  log_.say_waiting(60);
  EXPECT_THAT(lines_, SizeIs(1));
  log_.say_waiting(61);
  log_.say_waiting(200);
  EXPECT_THAT(lines_,
              ElementsAre("a: the snapshot is refused: 0",
                          "a: the snapshot is refused: 99 (the last of 99 failures of this kind in 60 s)"));
}

TEST_F(ExtenderFailureLog, SaysASingleOneWithoutANumber) {
  log_.add(Failure::snapshot, "a", "first", 1);
  log_.add(Failure::snapshot, "a", "second", 2);
  log_.say_waiting(61);
  EXPECT_THAT(lines_, ElementsAre("a: the snapshot is refused: first", "a: the snapshot is refused: second"));
}

TEST_F(ExtenderFailureLog, AMinuteAlsoFollowsANumber) {
  log_.add(Failure::snapshot, "a", "", 1);
  log_.add(Failure::snapshot, "a", "", 2);
  log_.say_waiting(70);
  log_.add(Failure::snapshot, "a", "", 129);
  EXPECT_THAT(lines_, SizeIs(2));
  log_.add(Failure::snapshot, "b", "", 131);
  ASSERT_THAT(lines_, SizeIs(3));
  EXPECT_EQ(lines_[2], "b: the snapshot is refused (the last of 2 failures of this kind in 61 s)");
}

TEST_F(ExtenderFailureLog, CutsAReasonOfAClient) {
  log_.add(Failure::malformed, "a", std::string(100'000, 'x'), 1);
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_THAT(lines_[0], SizeIs(testing::Lt(2000U)));
  EXPECT_THAT(lines_[0], EndsWith("xxx"));
}

TEST_F(ExtenderFailureLog, SaysNothingWithoutAFailure) {
  log_.say_waiting(1000);
  EXPECT_THAT(lines_, IsEmpty());
}

}  // namespace
}  // namespace berth::extender
