// SPDX-License-Identifier: Apache-2.0
#include "ebpf/counters.h"

#include <gtest/gtest.h>

namespace berth::ebpf {
namespace {

TEST(MultiplexingScale, IsTimeEnabledOverTimeRunning) {
  EXPECT_DOUBLE_EQ(multiplexing_scale(1'000'000, 250'000), 4);
  EXPECT_DOUBLE_EQ(multiplexing_scale(1'000'000, 1'000'000), 1);
}

TEST(MultiplexingScale, IsOneWhereNothingRan) {
  EXPECT_DOUBLE_EQ(multiplexing_scale(1'000'000, 0), 1);
  EXPECT_DOUBLE_EQ(multiplexing_scale(0, 0), 1);
}

TEST(MultiplexingScale, IsNeverBelowOne) { EXPECT_DOUBLE_EQ(multiplexing_scale(10, 11), 1); }

TEST(Counters, AnEventThatNoHostHasIsUnavailableAndNamed) {
  CounterEvents events;
  events.fill({.type = 0x7fffffff, .config = 42});
  const auto opened = Counters::open(events);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("2147483647:42 on CPU 0"), std::string::npos)
      << opened.error().message();
}

}  // namespace
}  // namespace berth::ebpf
