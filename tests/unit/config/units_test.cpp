// SPDX-License-Identifier: Apache-2.0
#include "config/units.h"

#include "config/wording.h"
#include "tests/unit/rounding.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::config {
namespace {

TEST(Duration, IsReadInSystemdsUnits) {
  EXPECT_DOUBLE_EQ(*parse_duration_s("10"), 10);
  EXPECT_DOUBLE_EQ(*parse_duration_s("500ms"), 0.5);
  EXPECT_DOUBLE_EQ(*parse_duration_s("1.5s"), 1.5);
  EXPECT_DOUBLE_EQ(*parse_duration_s("1h 30min"), 5400);
  EXPECT_DOUBLE_EQ(*parse_duration_s("2 days"), 172800);
  EXPECT_DOUBLE_EQ(*parse_duration_s(" 7d "), 604800);
  EXPECT_DOUBLE_EQ(*parse_duration_s("1min30s"), 90);
}

TEST(Duration, RefusesEverythingElse) {
  for (const char* text : {"", " ", "s", "-1", "+1", "1x", "1 2", "5 1s", "nan", "inf", "1e3", "1..2", "1s;",
                           "0x10", "infinity", "5 fortnights", "."}) {
    EXPECT_FALSE(parse_duration_s(text)) << text;
  }
  EXPECT_FALSE(parse_duration_s(std::string(400, '9') + "w"));
}

TEST(Duration, AnUnknownUnitIsToldTheKnownOnes) {
  const std::string said = parse_duration_s("2 months").error().message();
  for (const char* part : {"months", " ms", " min", " h", " d", " w"})
    EXPECT_NE(said.find(part), said.npos) << part;
}

RC_GTEST_PROP(Duration, TextReadsBack, (std::uint32_t ms)) {
  const double seconds = static_cast<double>(ms) / 1000;
  const auto read = parse_duration_s(duration_text(seconds));
  RC_ASSERT(read.has_value());
  // A number times its unit.
  RC_ASSERT(berth::testing::same_sum(*read, seconds, 4));
}

TEST(Duration, TextUsesTheLargestWholeUnit) {
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(1), "1s");
  EXPECT_EQ(duration_text(0.1), "100ms");
  EXPECT_EQ(duration_text(60), "1min");
  EXPECT_EQ(duration_text(90), "90s");
  EXPECT_EQ(duration_text(7 * 86400), "1w");
}

TEST(Size, IsReadInPowersOf1024) {
  EXPECT_EQ(*parse_size_bytes("0"), 0U);
  EXPECT_EQ(*parse_size_bytes("4096"), 4096U);
  EXPECT_EQ(*parse_size_bytes("4096B"), 4096U);
  EXPECT_EQ(*parse_size_bytes("512M"), 512ULL << 20U);
  EXPECT_EQ(*parse_size_bytes("2G"), 2ULL << 30U);
  EXPECT_EQ(*parse_size_bytes(" 1.5 K "), 1536U);
  EXPECT_EQ(*parse_size_bytes("7E"), 7ULL << 60U);
}

TEST(Size, KeepsEveryByteOfALargeNumber) {
  EXPECT_EQ(*parse_size_bytes("9007199254740993"), 9007199254740993ULL);  // not a double
}

TEST(Size, RefusesEverythingElse) {
  for (const char* text : {"", "G", "-1", "2GB", "2g", "2GiB", "8E", "9223372036854775808",
                           "99999999999999999999", "0.3", "1e9", "nan", "2G2", "1.2.3"}) {
    EXPECT_FALSE(parse_size_bytes(text)) << text;
  }
}

TEST(Wording, SuggestsASlipOfTheHandOnly) {
  const std::vector<std::string> names{"window_step", "weighting", "search"};
  EXPECT_EQ(closest("windowstep", names), "window_step");
  EXPECT_EQ(closest("window-step", names), "window_step");
  EXPECT_EQ(closest("serach", names), "search");
  EXPECT_EQ(closest("Search", names), "search");
  EXPECT_EQ(closest("colour", names), "");
  EXPECT_EQ(closest("", names), "");
  EXPECT_EQ(closest(std::string(100000, 's'), names), "");
}

TEST(Wording, QuotesOnOneLineAndBriefly) {
  EXPECT_EQ(quote("a\nb\x7f"), "\"a\\x0ab\\x7f\"");
  EXPECT_LT(quote(std::string(100000, 'x')).size(), 80U);
  // Cut between characters, not inside one.
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "\xc3\xbc";
  const auto quoted = quote(umlauts);
  EXPECT_EQ((quoted.size() - 5) % 2, 0U) << quoted;
}

TEST(Wording, PutsForeignMessagesOnOneLine) {
  EXPECT_EQ(on_one_line("a\n\tb\x7f"), "a  b ");
  EXPECT_LT(on_one_line(std::string(100000, 'x')).size(), 250U);
}

}  // namespace
}  // namespace berth::config
