// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/sampling_budget.h"

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

// Ticks a second apart until the averages have settled.
SamplingBudget settled(double read_cpu_s, double kernel_cores) {
  SamplingBudget budget;
  for (int tick = 0; tick < 200; ++tick) budget.add(read_cpu_s, kernel_cores * tick, tick);
  return budget;
}

TEST(SamplingBudget, WhatCostsLittleTicksAsConfigured) {
  EXPECT_DOUBLE_EQ(settled(0.001, 0).interval_s(1, 0.005), 1);
}

TEST(SamplingBudget, WhatWouldCostTooMuchTicksJustSeldomEnough) {
  const auto budget = settled(0.02, 0.001);
  const double interval_s = budget.interval_s(1, 0.005);
  EXPECT_NEAR(interval_s, 5, 1e-6);
  EXPECT_NEAR(budget.read_cpu_s() / interval_s + budget.kernel_cores(), 0.005, 1e-9);
}

TEST(SamplingBudget, TheKernelsPartLeavesHalfForReading) {
  const auto budget = settled(0.005, 0.1);
  EXPECT_NEAR(budget.interval_s(1, 0.005), 2, 1e-6);
  EXPECT_NEAR(budget.kernel_cores(), 0.1, 1e-6);
}

TEST(SamplingBudget, NoCostStretchesTicksBeyondAMinute) {
  EXPECT_DOUBLE_EQ(settled(100, 0).interval_s(1, 0.005), 60);
  EXPECT_DOUBLE_EQ(settled(100, 0).interval_s(300, 0.005), 300);
}

TEST(SamplingBudget, OneDearTickCountsAsFourAtMost) {
  auto budget = settled(0.001, 0);
  budget.add(1, 0, 201);
  EXPECT_NEAR(budget.read_cpu_s(), 0.001 + 0.2 * 0.003, 1e-9);
}

TEST(SamplingBudget, WhatUsersMadeMayTakeHalfOfAReading) {
  EXPECT_NEAR(settled(0.02, 0.001).share_of_users_s(2, 0.005), 0.004, 1e-9);
  EXPECT_NEAR(settled(0.02, 0.1).share_of_users_s(2, 0.005), 0.0025, 1e-9);
  EXPECT_GE(SamplingBudget().share_of_users_s(2, 0.005), 60) << "the first reading may take its time";
}

TEST(SamplingBudget, TheFirstReadingDoesNotCount) {
  SamplingBudget budget;
  budget.add(10, 5, 0);
  budget.add(0.001, 5.0002, 1);
  EXPECT_DOUBLE_EQ(budget.interval_s(1, 0.005), 1);
  EXPECT_NEAR(budget.kernel_cores(), 0.0002, 1e-9);
}

TEST(SamplingBudget, TheCoresUsedAreMeasuredWhateverTheIntervalShouldBe) {
  SamplingBudget budget;
  for (int tick = 0; tick < 400; ++tick) budget.add(0.01, 0.01 * tick, 0.5 * tick);
  EXPECT_NEAR(budget.cores(), 0.02 + 0.02, 1e-6);
}

TEST(SamplingBudget, KernelTimeThatStartsAnewIsNoNegativeCost) {
  auto budget = settled(0.001, 0.01);
  budget.add(0.001, 0, 201);
  EXPECT_GE(budget.kernel_cores(), 0);
}

TEST(SamplingBudget, BeforeTheFirstTickItTicksAsConfigured) {
  EXPECT_DOUBLE_EQ(SamplingBudget().interval_s(0.5, 0.005), 0.5);
}

}  // namespace
}  // namespace berth::daemon
