// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/progress_reports.h"

#include "os/clock.h"

#include <limits>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using Reports = std::vector<model::ProgressReport>;

TEST(ProgressReports, AreKeptInTheirOrderWithTheirTimes) {
  ProgressReports reports;
  EXPECT_TRUE(reports.of("a", 7).empty());
  EXPECT_EQ(reports.newest("a", 7), std::nullopt);
  ASSERT_TRUE(reports.add("a", 7, 10, 0.1));
  ASSERT_TRUE(reports.add("a", 7, 12, 0.3));
  ASSERT_TRUE(reports.add("a", 7, 15, 0.2));
  EXPECT_EQ(reports.of("a", 7), (Reports{{10, 0.1}, {12, 0.3}, {15, 0.2}}));
  EXPECT_EQ(reports.newest("a", 7), 0.2);
}

TEST(ProgressReports, OnlyTheLastEightAreKept) {
  ProgressReports reports;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(reports.add("a", 7, i, i * 0.05));
  const auto kept = reports.of("a", 7);
  ASSERT_EQ(kept.size(), 8U);
  EXPECT_EQ(kept.front().time, 12);
  EXPECT_EQ(kept.back().time, 19);
}

TEST(ProgressReports, RefusesWhatIsNoFraction) {
  ProgressReports reports;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double bad : {-0.1, 1.01, nan, infinite, -infinite}) {
    const auto added = reports.add("a", 7, 10, bad);
    ASSERT_FALSE(added) << bad;
    EXPECT_EQ(added.error().kind(), model::ErrorKind::invalid_input);
  }
  EXPECT_EQ(reports.newest("a", 7), std::nullopt);
}

TEST(ProgressReports, AFloodIsThinnedOutButNeitherItsNewestNorItsEndIsLost) {
  ProgressReports reports;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(reports.add("a", 7, 10 + i * 0.001, i * 0.0009));
  EXPECT_EQ(reports.newest("a", 7), 999 * 0.0009);
  const auto kept = reports.of("a", 7);
  ASSERT_EQ(kept.size(), 5U);
  for (std::size_t i = 1; i < kept.size(); ++i) {
    EXPECT_GE(kept[i].time - kept[i - 1].time, ProgressReports::kShortestGap_s);
  }
  ASSERT_TRUE(reports.add("a", 7, 11, 1));
  ASSERT_TRUE(reports.add("a", 7, 11.001, 1));
  EXPECT_EQ(reports.of("a", 7).size(), 6U);
  EXPECT_EQ(reports.of("a", 7).back(), (model::ProgressReport{11, 1}));
}

TEST(ProgressReports, OfTwoAtOneTimeTheLaterHolds) {
  ProgressReports reports;
  ASSERT_TRUE(reports.add("a", 7, 10, 0.1));
  ASSERT_TRUE(reports.add("a", 7, 10, 0.2));
  EXPECT_EQ(reports.of("a", 7), (Reports{{10, 0.2}}));
}

TEST(ProgressReports, AClockThatIsSetBackLeavesNoReportOfTheFuture) {
  ProgressReports reports;
  for (const double time : {10, 11, 20, 30}) ASSERT_TRUE(reports.add("a", 7, time, time * 0.01));
  ASSERT_TRUE(reports.add("a", 7, 12, 0.4));
  EXPECT_EQ(reports.of("a", 7), (Reports{{10, 0.1}, {11, 0.11}, {12, 0.4}}));
}

TEST(ProgressReports, TimeThatTheHostSleptMakesNoneOlder) {
  ProgressReports reports;
  for (const double time : {10, 20, 30}) ASSERT_TRUE(reports.add("a", 7, time, time * 0.01));
  ASSERT_TRUE(reports.add("a", 7, 3635, 0.4)) << "it came before the tick that sees the suspend";
  reports.pass_over(3600, 3636);
  EXPECT_EQ(reports.of("a", 7), (Reports{{3610, 0.1}, {3620, 0.2}, {3630, 0.3}, {3635, 0.4}}));
  EXPECT_EQ(reports.unchanged_since("a", 7), 3635);
}

TEST(Suspends, AreToldOnce) {
  double boot = 100;
  double awake = 90;
  os::Suspends suspends([&] { return boot; }, [&] { return awake; });
  EXPECT_EQ(suspends.take(), 0);
  boot += 50;
  awake += 49.9;
  EXPECT_EQ(suspends.take(), 0) << "it may be the time between two readings";
  boot += 3600;
  EXPECT_NEAR(suspends.take(), 3600.1, 1e-6);
  EXPECT_EQ(suspends.take(), 0);
}

TEST(ProgressReports, WhoSaysSomethingHimselfIsBelievedAlone) {
  using Source = ProgressReports::Source;
  ProgressReports reports;
  ASSERT_TRUE(reports.add("a", 7, 10, 0.1, Source::counted));
  ASSERT_TRUE(reports.add("a", 7, 12, 0.2, Source::counted));
  EXPECT_EQ(reports.of("a", 7), (Reports{{10, 0.1}, {12, 0.2}}));
  ASSERT_TRUE(reports.add("a", 7, 13, 0.7));
  ASSERT_TRUE(reports.add("a", 7, 14, 0.3, Source::counted));
  EXPECT_EQ(reports.of("a", 7), (Reports{{13, 0.7}}));
  EXPECT_EQ(reports.newest("a", 7), 0.7);
  EXPECT_EQ(reports.unchanged_since("a", 7), 13);
  ASSERT_TRUE(reports.add("a", 8, 15, 0.05, Source::counted));
  EXPECT_EQ(reports.of("a", 8), (Reports{{15, 0.05}})) << "another run is another matter";
}

TEST(ProgressReports, WhatIsNotCountedAnyMoreIsForgotten) {
  using Source = ProgressReports::Source;
  ProgressReports reports;
  ASSERT_TRUE(reports.add("a", 7, 10, 0.5, Source::counted));
  ASSERT_TRUE(reports.add("b", 8, 10, 0.5, Source::counted));
  ASSERT_TRUE(reports.add("c", 9, 10, 0.5));
  reports.keep_counted_of({"b"});
  EXPECT_EQ(reports.newest("a", 7), std::nullopt);
  EXPECT_EQ(reports.newest("b", 8), 0.5);
  EXPECT_EQ(reports.newest("c", 9), 0.5);
}

TEST(ProgressReports, ItIsKnownSinceWhenTheNewestFigureStands) {
  ProgressReports reports;
  EXPECT_EQ(reports.unchanged_since("a", 7), std::nullopt);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(reports.add("a", 7, 10 + i, 0.5));
  EXPECT_EQ(reports.unchanged_since("a", 7), 10) << "though only the last eight are kept";
  ASSERT_TRUE(reports.add("a", 7, 29.1, 0.6));
  EXPECT_EQ(reports.unchanged_since("a", 7), 29.1) << "though it came too soon to be kept";
  ASSERT_TRUE(reports.add("a", 7, 5, 0.6));
  EXPECT_EQ(reports.unchanged_since("a", 7), 5) << "the clock was set back";
  ASSERT_TRUE(reports.add("a", 8, 40, 0.6));
  EXPECT_EQ(reports.unchanged_since("a", 8), 40);
}

TEST(ProgressReports, EveryRunHasItsOwn) {
  ProgressReports reports;
  ASSERT_TRUE(reports.add("a", 7, 10, 0.9));
  EXPECT_TRUE(reports.of("a", 8).empty());
  ASSERT_TRUE(reports.add("a", 8, 11, 0.1));
  EXPECT_EQ(reports.of("a", 8), (Reports{{11, 0.1}}));
  EXPECT_TRUE(reports.of("a", 7).empty());
  reports.keep_if([](const std::string& id, std::uint64_t run) { return id == "a" && run == 9; });
  EXPECT_EQ(reports.newest("a", 8), std::nullopt);
}

}  // namespace
}  // namespace berth::daemon
