// SPDX-License-Identifier: Apache-2.0
#include "model/number.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace berth::model {

TEST(Number, IsTheWholeText) {
  EXPECT_EQ(to_number<int>("-12"), -12);
  EXPECT_EQ(to_number<std::uint64_t>("18446744073709551615"), 18446744073709551615U);
  EXPECT_EQ(to_number<double>("1.5e3"), 1500);
}

TEST(Number, MayHaveAnotherBase) {
  EXPECT_EQ(to_number<std::uint16_t>("1F90", 16), 8080);
  for (const char* text : {"", "0x1", "1G", "10000"})
    EXPECT_EQ(to_number<std::uint16_t>(text, 16), std::nullopt) << text;
}

TEST(Number, AnythingAroundItMakesItNone) {
  for (const char* text : {"", " 1", "1 ", "+1", "1\n", "1k", "0x1", "one"}) {
    EXPECT_EQ(to_number<int>(text), std::nullopt) << text;
    EXPECT_EQ(to_number<double>(text), std::nullopt) << text;
  }
  EXPECT_EQ(to_number<int>("1.0"), std::nullopt);
}

TEST(Number, WhatTheTypeDoesNotHoldIsNone) {
  EXPECT_EQ(to_number<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(to_number<unsigned>("-1"), std::nullopt);
  EXPECT_EQ(to_number<double>("1e999"), std::nullopt);
}

}  // namespace berth::model
