// SPDX-License-Identifier: Apache-2.0
#include "spark/family.h"

#include "fake_proc.h"

#include <gtest/gtest.h>

namespace berth::spark {
namespace {

TEST(Family, IsWhomItStartedAndWhomTheseDid) {
  test::FakeProc proc;
  proc.add(7, test::standalone_executor("app-1", "0"), "w", 700, 4);
  proc.add_plain(9, "python3", "w", 7);
  proc.add_plain(8, "python3", "w", 9);
  proc.add_plain(5, "sleep", "w", 8);
  proc.add_plain(6, "sleep", "w", 1);
  proc.add_plain(10, "other", "w", 4);
  EXPECT_EQ(family_of(proc.root(), 7, {5, 6, 7, 8, 9, 10, 11}),
            (std::vector<Relative>{{7, 700}, {5, 100}, {8, 100}, {9, 100}}));
  EXPECT_EQ(family_of(proc.root(), 7, {5, 8}), (std::vector<Relative>{{7, 700}}))
      << "who stands between is not among them";
  EXPECT_EQ(family_of(proc.root(), 7, {}), (std::vector<Relative>{{7, 700}}));
  EXPECT_EQ(family_of(proc.root(), 11, {7, 9}), std::vector<Relative>{}) << "it has ended";
}

}  // namespace
}  // namespace berth::spark
