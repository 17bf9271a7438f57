// SPDX-License-Identifier: Apache-2.0
#include "model/bytes_text.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * kKiB;
constexpr double kPiB = 1024 * 1024 * 1024 * kMiB;

TEST(BytesText, HasOneDecimal) {
  EXPECT_EQ(bytes_with_one_decimal(0), "0 B");
  EXPECT_EQ(bytes_with_one_decimal(1023), "1023 B");
  EXPECT_EQ(bytes_with_one_decimal(1024), "1.0 KiB");
  EXPECT_EQ(bytes_with_one_decimal(1536), "1.5 KiB");
  EXPECT_EQ(bytes_with_one_decimal(-1.5 * kMiB), "-1.5 MiB");
  EXPECT_EQ(bytes_with_one_decimal(5000 * kPiB), "5000.0 PiB");
}

TEST(BytesText, HasFourDigits) {
  EXPECT_EQ(bytes_in_four_digits(0.0), "0 bytes");
  EXPECT_EQ(bytes_in_four_digits(1023.0), "1023 bytes");
  EXPECT_EQ(bytes_in_four_digits(std::uint64_t{1024}), "1 KiB");
  EXPECT_EQ(bytes_in_four_digits(1.46484375 * kMiB), "1.465 MiB");
  EXPECT_EQ(bytes_in_four_digits(512 * kMiB), "512 MiB");
}

TEST(BytesText, WhatRoundsTo1024IsOneOfTheNextUnit) {
  EXPECT_EQ(bytes_with_one_decimal(1023.4), "1023 B");
  EXPECT_EQ(bytes_with_one_decimal(1023.5), "1.0 KiB");
  EXPECT_EQ(bytes_with_one_decimal(1023.94 * kKiB), "1023.9 KiB");
  EXPECT_EQ(bytes_with_one_decimal(1023.95 * kKiB), "1.0 MiB");
  EXPECT_EQ(bytes_with_one_decimal(-1023.95 * kKiB), "-1.0 MiB");
  EXPECT_EQ(bytes_with_one_decimal(kMiB - 1), "1.0 MiB");
  EXPECT_EQ(bytes_with_one_decimal(kPiB - 1), "1.0 PiB");

  EXPECT_EQ(bytes_in_four_digits(1023.4 * kKiB), "1023 KiB");
  EXPECT_EQ(bytes_in_four_digits(1023.5 * kKiB), "1 MiB");
  EXPECT_EQ(bytes_in_four_digits(kMiB - 1), "1 MiB");
  EXPECT_EQ(bytes_in_four_digits(kPiB - 1), "1 PiB");
}

}  // namespace
}  // namespace berth::model
