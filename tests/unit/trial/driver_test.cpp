// SPDX-License-Identifier: Apache-2.0
// The windows of a trial, and its ends.
#include "trial/driver.h"

#include "simulated_host.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace berth::trial {
namespace {

using test::SimulatedHost;

Pace short_pace() { return *make_pace(14 * 20, 20, 1); }

TEST(TrialDriver, BothSidesHaveAsManyWindowsInRandomOrder) {
  const auto order = make_order(30, 7);
  std::set<Side> first;
  for (const auto& block : order) {
    EXPECT_NE(block[0], block[1]);
    first.insert(block[0]);
  }
  EXPECT_EQ(first.size(), 2U);
  EXPECT_EQ(order, make_order(30, 7));
  EXPECT_NE(order, make_order(30, 8));
}

TEST(TrialDriver, EveryWindowPutsItsSettingsInForce) {
  SimulatedHost host(1);
  const Measured measured = run(host, short_pace(), 3);
  EXPECT_EQ(measured.blocks.size(), 7U);
  ASSERT_EQ(host.uses.size(), 14U);
  for (std::size_t i = 0; i < host.uses.size(); ++i) {
    EXPECT_EQ(host.uses[i].second, measured.order[i / 2][i % 2]) << i;
    EXPECT_NEAR(host.uses[i].first, 1000 + 20.0 * static_cast<double>(i), 0.01) << i;
    EXPECT_GT(host.leases[i], 20) << "it outlives the window";
  }
}

TEST(TrialDriver, NothingIsReadInTheWarmUp) {
  SimulatedHost host(1);
  const Pace pace = short_pace();
  run(host, pace, 3);
  ASSERT_FALSE(host.looks.empty());
  for (const double time : host.looks) {
    const auto next = std::upper_bound(host.uses.begin(), host.uses.end(), std::pair(time - 1e-6, Side::b));
    EXPECT_GE(time - std::prev(next)->first, pace.warm_up_s - 1e-6);
  }
}

TEST(TrialDriver, ItTellsTheTimeLeft) {
  SimulatedHost host(1);
  run(host, short_pace(), 3);
  EXPECT_EQ(host.all_windows, 14U);
  EXPECT_EQ(host.shown.front(), std::pair(std::size_t{0}, 280.0));
  EXPECT_EQ(host.shown.back().first, 13U);
  EXPECT_NEAR(host.shown.back().second, 0, 0.01);
}

TEST(TrialDriver, AnInterruptedTrialKeepsItsWholeBlocks) {
  SimulatedHost host(1);
  host.ends_at = 1000 + 5 * 20 + 3;
  const Measured measured = run(host, short_pace(), 3);
  EXPECT_TRUE(measured.interrupted);
  EXPECT_FALSE(measured.failure);
  EXPECT_EQ(measured.blocks.size(), 2U);
  const Result result = evaluate(measured, 3);
  EXPECT_FALSE(result.rows.empty());
  for (const Row& row : result.rows) EXPECT_FALSE(row.change.shown) << "two blocks show nothing";
}

TEST(TrialDriver, ATrialThatTheHostEndsSaysWhyAndKeepsItsBlocks) {
  SimulatedHost host(1);
  host.refuses_at = 6;
  const Measured measured = run(host, short_pace(), 3);
  ASSERT_TRUE(measured.failure);
  EXPECT_NE(measured.failure->message().find("reloaded"), std::string::npos);
  EXPECT_EQ(measured.blocks.size(), 3U);
}

TEST(TrialDriver, ATrialThatMeasuresNothingEndsAfterItsFirstBlock) {
  SimulatedHost host(1);
  host.empty = true;
  const Measured measured = run(host, short_pace(), 3);
  ASSERT_TRUE(measured.failure);
  EXPECT_EQ(measured.failure->kind(), model::ErrorKind::refused);
  EXPECT_EQ(host.uses.size(), 2U);
}

TEST(TrialDriver, TheCallersNumberIsAFigureOfTheHost) {
  SimulatedHost host(1);
  host.metric = 12;
  const Measured measured = run(host, short_pace(), 3);
  const Result result = evaluate(measured, 3);
  const auto row = std::find_if(result.rows.begin(), result.rows.end(),
                                [](const Row& it) { return it.key.figure == Figure::metric; });
  ASSERT_NE(row, result.rows.end());
  EXPECT_EQ(row->key.service, "");
  EXPECT_TRUE(row->change.shown);
  EXPECT_NEAR(row->change.change, 1, 1e-9) << "twice as much";
  EXPECT_EQ(better_side(*row), Side::a);
  EXPECT_EQ(better_side(result, Figure::metric), Side::a);
  EXPECT_EQ(better_side(result, Figure::throttled), std::nullopt);
  for (const double seconds : host.metric_s) EXPECT_LT(seconds, short_pace().counted_s());
}

TEST(TrialDriver, ACommandThatPrintsNoNumberEndsTheTrialAtItsFirstWindow) {
  SimulatedHost host(1);
  host.metric = 12;
  host.metric_fails = true;
  const Measured measured = run(host, short_pace(), 3);
  ASSERT_TRUE(measured.failure);
  EXPECT_EQ(measured.metric_problem, "it printed no number");
  EXPECT_EQ(host.uses.size(), 1U);
}

TEST(TrialDriver, TooFewWindowsAreRefusedWithTheTimeThatWouldDo) {
  const auto pace = make_pace(600, 60, 1);
  ASSERT_FALSE(pace);
  EXPECT_EQ(pace.error().kind(), model::ErrorKind::refused);
  EXPECT_NE(pace.error().message().find("--for 840 s"), std::string::npos) << pace.error().message();
  EXPECT_TRUE(make_pace(840, 60, 1));
}

TEST(TrialDriver, AWindowOfTooFewTicksIsRefused) {
  const auto pace = make_pace(3600, 20, 3);
  ASSERT_FALSE(pace);
  EXPECT_NE(pace.error().message().find("--window 24 s"), std::string::npos) << pace.error().message();
  EXPECT_TRUE(make_pace(3600, 24, 3));
}

TEST(TrialDriver, UsualWindowsFitTheLengthOfTheTrial) {
  EXPECT_DOUBLE_EQ(make_pace(3600, 0, 1)->window_s, 60);
  EXPECT_EQ(make_pace(3600, 0, 1)->blocks, 30U);
  EXPECT_DOUBLE_EQ(make_pace(600, 0, 1)->window_s, 20);
  EXPECT_EQ(make_pace(600, 0, 1)->blocks, 15U);
  EXPECT_EQ(make_pace(30 * 86400.0, 0, 1)->blocks, kMostBlocks);
  EXPECT_FALSE(make_pace(31 * 86400.0, 0, 1));
  EXPECT_FALSE(make_pace(30 * 86400.0, 86400, 1)) << "a window of a day";
  EXPECT_FALSE(make_pace(86400, 30, 1)) << "more windows than may be compared";
}

TEST(TrialDriver, AHostWithoutWorkIsUselessButForAMetric) {
  model::Snapshot snapshot;
  EXPECT_TRUE(why_useless(snapshot, false));
  EXPECT_FALSE(why_useless(snapshot, true));
  SimulatedHost host(1);
  host.wait(5);
  EXPECT_FALSE(why_useless(*host.look(), false));
}

TEST(TrialDriver, OnlySoManyServicesHaveRows) {
  Measured measured;
  Figures figures;
  for (std::size_t i = 0; i < kMostServices + 5; ++i) figures[{"s" + std::to_string(i), Figure::cpi}] = 1;
  figures[{"", Figure::cpi}] = 1;
  measured.blocks.assign(8, {figures, figures});
  const Result result = evaluate(measured, 1);
  EXPECT_EQ(result.rows.size(), kMostServices + 1);
  EXPECT_EQ(result.left_out, 5U);
  EXPECT_EQ(result.rows.front().key.service, "");
}

}  // namespace
}  // namespace berth::trial
