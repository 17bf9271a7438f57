// SPDX-License-Identifier: Apache-2.0
#include "model/cgroup_counters.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

DelayHistogram with(std::size_t bucket, std::uint64_t count) {
  DelayHistogram made{};
  made[bucket] = count;
  return made;
}

TEST(DelayQuantile, NothingDispatchedHasNone) {
  EXPECT_FALSE(delay_quantile_us({}, {}, 0.5));
  EXPECT_FALSE(delay_quantile_us(with(3, 7), with(3, 7), 0.99));
}

TEST(DelayQuantile, IsLinearWithinItsBucket) {
  // Bucket 1 is 1,024 to 2,048 ns.
  EXPECT_DOUBLE_EQ(*delay_quantile_us({}, with(1, 10), 0.5), 1.536);
  EXPECT_DOUBLE_EQ(*delay_quantile_us({}, with(1, 10), 1), 2.048);
  EXPECT_DOUBLE_EQ(*delay_quantile_us({}, with(0, 4), 0.25), 0.256);
}

TEST(DelayQuantile, CountsOnlyWhatCameBetween) {
  DelayHistogram now = with(2, 1000);
  now[12] = 1;
  // One wait of 2 to 4 ms among none others.
  EXPECT_GT(*delay_quantile_us(with(2, 1000), now, 0.5), 2097);
  EXPECT_LT(*delay_quantile_us({}, now, 0.5), 4.1);
}

TEST(DelayQuantile, TheTailIsFoundBehindTheBulk) {
  DelayHistogram now = with(0, 98);
  now[11] = 2;
  EXPECT_LT(*delay_quantile_us({}, now, 0.5), 1.024);
  EXPECT_GT(*delay_quantile_us({}, now, 0.99), 1048.576);
}

TEST(DelayQuantile, TheLastBucketHasNoUpperEnd) {
  EXPECT_DOUBLE_EQ(*delay_quantile_us({}, with(kDelayBuckets - 1, 3), 0.99), 4294967.296);
}

TEST(DelayQuantile, AnotherCgroupsReadingIsNotCompared) {
  EXPECT_FALSE(delay_quantile_us(with(4, 9), with(4, 8), 0.5));
}

TEST(DelayQuantile, AnImpossibleQuantileIsTheNearestPossible) {
  EXPECT_DOUBLE_EQ(*delay_quantile_us({}, with(1, 1), 7), 2.048);
  EXPECT_DOUBLE_EQ(*delay_quantile_us({}, with(1, 1), -7), 1.024);
}

TEST(LlcMpki, IsMissesAThousandInstructions) {
  CgroupCounters before;
  before.hardware = HardwareCounts{1e6, 0, 0, 500};
  CgroupCounters now;
  now.hardware = HardwareCounts{3e6, 0, 0, 4500};
  EXPECT_DOUBLE_EQ(*llc_mpki(before, now), 2.0);
}

TEST(LlcMpki, IsUnknownWithoutCountersOrInstructions) {
  CgroupCounters counted;
  counted.hardware = HardwareCounts{1e6, 0, 0, 500};
  EXPECT_FALSE(llc_mpki({}, counted));
  EXPECT_FALSE(llc_mpki(counted, {}));
  EXPECT_FALSE(llc_mpki(counted, counted));
  CgroupCounters fewer = counted;
  fewer.hardware->instructions = 2e6;
  fewer.hardware->llc_misses = 400;
  EXPECT_FALSE(llc_mpki(counted, fewer));
}

TEST(CyclesPerInstruction, IsUnknownWithoutCountersOrInstructions) {
  CgroupCounters before;
  before.hardware = HardwareCounts{1e6, 2e6, 0, 500};
  CgroupCounters now;
  now.hardware = HardwareCounts{3e6, 5e6, 0, 4500};
  EXPECT_DOUBLE_EQ(*cycles_per_instruction(before, now), 1.5);
  EXPECT_DOUBLE_EQ(*llc_misses(before, now), 4000);
  EXPECT_FALSE(cycles_per_instruction(now, before));
  EXPECT_FALSE(llc_misses(now, before));
  EXPECT_FALSE(cycles_per_instruction({}, now));
  EXPECT_FALSE(llc_misses({}, now));
}

}  // namespace
}  // namespace berth::model
