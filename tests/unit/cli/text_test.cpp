// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include "cli/table.h"

#include <limits>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace berth::cli {

TEST(Text, ControlCharactersNeverReachTheTerminal) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\td\x07"), "a?[31mb c d?");
  EXPECT_EQ(printable("\x7f"), "?");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "?31m");  // the one-character CSI
}

TEST(Text, WhatIsNotSeenOrTurnsTheDirectionIsReplaced) {
  EXPECT_EQ(printable("web\xE2\x80\xAEgpj"), "web?gpj");  // U+202E
  EXPECT_EQ(printable("w\xE2\x80\x8B"
                      "eb"),
            "w?eb");                                         // U+200B
  EXPECT_EQ(printable("\xE2\x81\xA6x\xE2\x81\xA9"), "?x?");  // U+2066, U+2069
  EXPECT_EQ(printable("\xEF\xBB\xBFx"), "?x");               // U+FEFF
  EXPECT_EQ(printable("\xE2\x80\x90"), "\xE2\x80\x90");      // a hyphen
}

TEST(Text, MalformedUtf8IsReplaced) {
  EXPECT_EQ(printable("a\xff"
                      "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(printable("\xc3"), "\xEF\xBF\xBD");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_EQ(printable("\xc0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");                  // overlong
}

TEST(Text, ProperUtf8IsLeftAlone) { EXPECT_EQ(printable("größe 測試"), "größe 測試"); }

TEST(Text, WidthCountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("größe"), 5U);
  EXPECT_EQ(display_width("測試"), 4U);
  EXPECT_EQ(display_width("e\xcc\x81"), 1U);  // a combining accent
}

TEST(Text, CuttingKeepsTheEnd) {
  EXPECT_EQ(keep_end("system.slice/web.service", 12), "…web.service");
  EXPECT_EQ(keep_end("short", 12), "short");
  EXPECT_EQ(keep_end("測試測試", 5), "…測試");
  EXPECT_EQ(keep_end("測試測試", 4), "…試");
  EXPECT_EQ(keep_end("abc", 1), "…");
  EXPECT_EQ(keep_end("abc", 0), "");
  EXPECT_EQ(keep_begin("runs on vCPUs 0-3", 12), "runs on vCP…");
  EXPECT_EQ(keep_begin("short", 12), "short");
  EXPECT_EQ(keep_begin("測試測試", 5), "測試…");
  EXPECT_EQ(keep_begin("測試測試", 4), "測…");
  EXPECT_EQ(keep_begin("abc", 1), "…");
  EXPECT_EQ(keep_begin("abc", 0), "");
}

TEST(Text, BytesHaveTheirUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(std::uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(format_bytes((std::uint64_t{1} << 20) - 1), "1.0 MiB");
}

TEST(Text, WhatIsNotKnownIsADash) {
  EXPECT_EQ(format_number(std::nullopt, 2), "-");
  EXPECT_EQ(format_number(std::numeric_limits<double>::quiet_NaN(), 2), "-");
  EXPECT_EQ(format_number(1.005, 1), "1.0");
  EXPECT_EQ(format_share(std::nullopt), "-");
  EXPECT_EQ(format_share(0.425), "42 %");
}

TEST(Text, DurationsAreRounded) {
  EXPECT_EQ(format_duration(59.9), "59 s");
  EXPECT_EQ(format_duration(61), "1 min 1 s");
  EXPECT_EQ(format_duration(2 * 3600 + 600), "2 h 10 min");
  EXPECT_EQ(format_duration(3 * 86400 + 4 * 3600), "3 d 4 h");
  EXPECT_EQ(format_duration(-5), "-");
}

TEST(Text, ColourOnlyWhereTheStyleHasIt) {
  EXPECT_EQ(paint({.colour = false}, Colour::red, "no"), "no");
  EXPECT_EQ(paint({.colour = true}, Colour::red, "no"), "\x1b[31mno\x1b[0m");
}

class TableText : public testing::Test {
 protected:
  static std::string printed(const Table& table, std::size_t width) {
    std::ostringstream out;
    table.print(out, {.colour = false, .width = width});
    return out.str();
  }
};

TEST_F(TableText, ColumnsAlign) {
  Table table({{"NAME"}, {"N", Align::right}, {"LAST"}});
  table.add({"größe", "1", "x"});
  table.add({"a", "100", ""});
  EXPECT_EQ(printed(table, 0),
            "NAME     N  LAST\n"
            "größe    1  x\n"
            "a      100\n");
}

TEST_F(TableText, NarrowTerminalsCutWhatMayShrink) {
  Table table({{"WORKLOAD", Align::left, true}, {"CPU", Align::right}});
  table.add({"system.slice/web@1.service", "1.00"});
  EXPECT_EQ(printed(table, 20),
            "WORKLOAD         CPU\n"
            "…web@1.service  1.00\n");
}

TEST_F(TableText, TheFirstColumnShrinksLastAndTheWidestOfTheOthersFirst) {
  Table table(
      {{"WORKLOAD", Align::left, true}, {"SERVICE", Align::left, true}, {"PINNED", Align::left, true}});
  table.add({"batch.slice/batch-sort.scope", "batch.slice/batch-sort.scope", "0-1,4-5,8-9,12-13"});
  EXPECT_EQ(printed(table, 70),
            "WORKLOAD                      SERVICE                PINNED\n"
            "batch.slice/batch-sort.scope  …ice/batch-sort.scope  0-1,4-5,8-9,12-13\n");
  EXPECT_EQ(printed(table, 56),
            "WORKLOAD                      SERVICE       PINNED\n"
            "batch.slice/batch-sort.scope  …-sort.scope  …5,8-9,12-13\n");
  EXPECT_EQ(printed(table, 50),
            "WORKLOAD                SERVICE       PINNED\n"
            "…lice/batch-sort.scope  …-sort.scope  …5,8-9,12-13\n");
}

TEST_F(TableText, NarrowTerminalsLeaveOutSpareColumnsOfDashes) {
  Table table({{"WORKLOAD"}, {"QUOTA", Align::right, false, true}});
  table.add({"web", "-"});
  EXPECT_EQ(printed(table, 10), "WORKLOAD\nweb\n");
  EXPECT_EQ(printed(table, 0), "WORKLOAD  QUOTA\nweb           -\n");
  table.add({"db", "1.00"});
  EXPECT_NE(printed(table, 10).find("QUOTA"), std::string::npos);
}

TEST_F(TableText, CellsCannotBreakTheTable) {
  Table table({{"NAME"}});
  table.add({"a\nb\x1b[2J"});
  EXPECT_EQ(printed(table, 0), "NAME\na b?[2J\n");
}

}  // namespace berth::cli
