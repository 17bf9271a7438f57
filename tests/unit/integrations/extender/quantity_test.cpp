// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/documents.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::extender {
namespace {

TEST(ExtenderQuantity, IsRead) {
  EXPECT_EQ(parse_quantity("2"), 2);
  EXPECT_EQ(parse_quantity("0"), 0);
  EXPECT_EQ(parse_quantity("1.5"), 1.5);
  EXPECT_DOUBLE_EQ(parse_quantity("1500m").value_or(-1), 1.5);
  EXPECT_DOUBLE_EQ(parse_quantity("250u").value_or(-1), 0.00025);
  EXPECT_EQ(parse_quantity("8k"), 8000);
  EXPECT_EQ(parse_quantity("64Gi"), 64.0 * (1 << 30));
  EXPECT_EQ(parse_quantity("1Ki"), 1024);
  EXPECT_EQ(parse_quantity("1e3"), 1000);
}

TEST(ExtenderQuantity, IsReadUpTo16Ei) {
  EXPECT_EQ(parse_quantity("16Ei"), 18446744073709551616.0);
  EXPECT_EQ(parse_quantity("8Ei"), 9223372036854775808.0);
  EXPECT_EQ(parse_quantity("9223372036854775807"), 9223372036854775808.0) << "the nearest double";
  EXPECT_EQ(parse_quantity("18E"), 18e18);
  EXPECT_EQ(parse_quantity("16.1Ei"), std::nullopt);
  EXPECT_EQ(parse_quantity("19E"), std::nullopt);
}

TEST(ExtenderQuantity, IsRefused) {
  for (const char* bad :
       {"", "m", "Gi", "x", "-1", "-1m", "1 Gi", "1KB", "nan", "inf", "infG", "1e300", "100E", "1,5", "0x10"})
    EXPECT_EQ(parse_quantity(bad), std::nullopt) << bad;
  EXPECT_EQ(parse_quantity(std::string(65, '1')), std::nullopt);
}

}  // namespace
}  // namespace berth::extender
