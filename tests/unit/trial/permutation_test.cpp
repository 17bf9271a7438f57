// SPDX-License-Identifier: Apache-2.0
// What may be called a difference.
#include "trial/permutation.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace berth::trial {
namespace {

Series noisy(std::size_t blocks, double effect, std::uint64_t seed, double offset = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise;
  Series series;
  for (std::size_t i = 0; i < blocks; ++i)
    series.emplace_back(Pair{offset + noise(random), offset + effect + noise(random)});
  return series;
}

TEST(Permutation, SixBlocksHaveAnIntervalAndSevenCanShowADifference) {
  const auto of = [](std::size_t blocks) { return compare({Series(blocks, Pair{1, 2})}, 1).front(); };
  EXPECT_FALSE(of(5).low);
  ASSERT_TRUE(of(6).low);
  EXPECT_FALSE(of(6).shown);
  const Change seven = of(7);
  EXPECT_TRUE(seven.shown);
  EXPECT_DOUBLE_EQ(seven.p, 2 / 128.0) << "the present way, and all exchanged";
}

TEST(Permutation, AShareIsToldWhereAllAreAboveZero) {
  const Change change = compare({Series(8, Pair{100, 130})}, 1).front();
  EXPECT_TRUE(change.relative);
  EXPECT_NEAR(change.change, 0.3, 1e-9);
  EXPECT_NEAR(*change.low, 0.3, 1e-9);
  EXPECT_NEAR(*change.high, 0.3, 1e-9);
  Series with_zero(8, Pair{100, 130});
  with_zero[3] = Pair{0, 130};
  const Change absolute = compare({with_zero}, 1).front();
  EXPECT_FALSE(absolute.relative);
  EXPECT_NEAR(absolute.change, 30 + 100 / 8.0, 1e-9);
}

TEST(Permutation, EqualWindowsAreNoDifference) {
  const Change change = compare({Series(20, Pair{0, 0})}, 1).front();
  EXPECT_FALSE(change.shown);
  EXPECT_DOUBLE_EQ(change.p, 1);
  EXPECT_DOUBLE_EQ(*change.low, 0);
  EXPECT_DOUBLE_EQ(*change.high, 0);
}

TEST(Permutation, BlocksThatDoNotKnowTheFigureAreLeftOut) {
  Series series(10, Pair{1, 2});
  series[0] = std::nullopt;
  series[9] = std::nullopt;
  const auto changes = compare({series, Series(10)}, 1);
  EXPECT_EQ(changes[0].blocks, 8U);
  EXPECT_EQ(changes[1].blocks, 0U);
  EXPECT_FALSE(changes[1].low);
  EXPECT_FALSE(changes[1].shown);
}

TEST(Permutation, TheIntervalHoldsTheTruthInNineteenOfTwentyTrials) {
  int held = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Change change = compare({noisy(10, 0.5, seed)}, seed).front();
    held += *change.low <= 0.5 && 0.5 <= *change.high;
  }
  EXPECT_NEAR(held / 400.0, 0.95, 0.025);
}

TEST(Permutation, ManyFiguresMakeNoDifferenceByTheirNumber) {
  int shown = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<Series> figures;
    for (std::uint64_t i = 0; i < 30; ++i) figures.push_back(noisy(12, 0, 1000 * seed + i));
    bool any = false;
    for (const Change& change : compare(figures, seed)) any = any || change.shown;
    shown += any;
  }
  EXPECT_LE(shown, 5);
}

TEST(Permutation, TheSameSeedGivesTheSameAnswer) {
  const auto first = compare({noisy(30, 0.4, 5)}, 7).front();
  const auto second = compare({noisy(30, 0.4, 5)}, 7).front();
  EXPECT_EQ(first.p, second.p);
  EXPECT_EQ(first.low, second.low);
}

TEST(Permutation, WithoutFiguresThereIsNothingToCompare) { EXPECT_TRUE(compare({}, 1).empty()); }

}  // namespace
}  // namespace berth::trial
