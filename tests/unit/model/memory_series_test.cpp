// SPDX-License-Identifier: Apache-2.0
#include "model/memory_series.h"

#include <vector>

#include <gtest/gtest.h>

namespace berth::model {

namespace {

using Series = std::vector<MemoryReading>;

Series series_of(const Series& readings) {
  Series series;
  for (const MemoryReading& reading : readings) add_reading(series, reading);
  return series;
}

}  // namespace

TEST(MemorySeries, KeepsTheNewestReadings) {
  Series series;
  for (std::size_t i = 0; i < kMostMemoryReadings + 7; ++i)
    add_reading(series, {1.0 + static_cast<double>(i), i});
  ASSERT_EQ(series.size(), kMostMemoryReadings);
  EXPECT_EQ(series.front().bytes, 7U);
  EXPECT_EQ(series.back().bytes, kMostMemoryReadings + 6);
}

TEST(MemorySeries, IsNotShorterForFastTicks) {
  EXPECT_EQ(series_of({{1, 1}, {1.25, 2}, {1.5, 3}, {1.75, 4}}), (Series{{1, 1}, {1.75, 4}}));
  EXPECT_EQ(series_of({{1, 1}, {1.5, 2}, {2, 3}}), (Series{{1, 1}, {1.5, 2}, {2, 3}}));
  EXPECT_EQ(series_of({{1, 1}, {2, 2}, {3, 3}}).size(), 3U);
}

TEST(MemorySeries, HasOneReadingOfATimeAndGoesForward) {
  EXPECT_EQ(series_of({{1, 1}, {1, 2}}), (Series{{1, 2}}));
  EXPECT_EQ(series_of({{5, 1}, {6, 2}, {3, 3}}), (Series{{3, 3}}));
}

}  // namespace berth::model
