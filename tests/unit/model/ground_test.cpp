// SPDX-License-Identifier: Apache-2.0
#include "model/ground.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

TEST(Ground, NoWordOfAUserFavoursItsGroupsAndEveryWordOfRootMay) {
  for (const Word word : {Word::name, Word::mark, Word::limit, Word::write}) {
    EXPECT_FALSE(may_favour_itself({.user = 1000}, word));
    EXPECT_TRUE(may_favour_itself({}, word));
    EXPECT_EQ(may_favour_itself({.user = 1000, .outermost = true}, word), word != Word::mark);
  }
}

}  // namespace
}  // namespace berth::model
