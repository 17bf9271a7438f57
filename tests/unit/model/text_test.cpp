// SPDX-License-Identifier: Apache-2.0
#include "model/text.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

TEST(Text, IsTrimmedOfTheNamedCharactersAlone) {
  EXPECT_EQ(trimmed(" \ta b\t ", kBlanks), "a b");
  EXPECT_EQ(trimmed(" \na\r\n", kBlanks), "\na\r\n");
  EXPECT_EQ(trimmed(" \na\r\n", kBlanksAndBreaks), "a");
  EXPECT_EQ(trimmed("\v\fa\v\f", kBlanksAndBreaks), "\v\fa\v\f");
  EXPECT_EQ(trimmed("\v\fa\v\f", kWhiteSpace), "a");
  EXPECT_EQ(trimmed_start("  a  ", kBlanks), "a  ");
  EXPECT_EQ(trimmed_end("  a \n\n", kEndOfControlFile), "  a");
}

TEST(Text, OfBlanksOrOfNothingTrimsToNothing) {
  for (const char* text : {"", " ", " \t \t"}) {
    EXPECT_EQ(trimmed(text, kBlanks), "");
    EXPECT_EQ(trimmed_start(text, kBlanks), "");
    EXPECT_EQ(trimmed_end(text, kBlanks), "");
  }
}

TEST(Text, IsTakenPartByPart) {
  std::string_view text = "a,,b";
  EXPECT_EQ(take_part(text, ","), "a");
  EXPECT_EQ(take_part(text, ","), "");
  EXPECT_EQ(text, "b");
  EXPECT_EQ(take_part(text, ","), "b");
  EXPECT_EQ(text, "");
  EXPECT_EQ(take_part(text, ","), "");

  text = "GET /\r\nHost: a\r";
  EXPECT_EQ(take_part(text, "\r\n"), "GET /");
  EXPECT_EQ(take_part(text, "\r\n"), "Host: a\r");

  text = "a\n";
  EXPECT_EQ(take_line(text), "a");
  EXPECT_EQ(text, "");

  text = std::string_view("a\0b", 3);
  EXPECT_EQ(take_part(text, std::string_view("\0", 1)), "a");
  EXPECT_EQ(text, "b");
}

TEST(Text, IsDigitsOfAtLeastOne) {
  EXPECT_TRUE(is_digits("007"));
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1a", "0x1", "1.0"})
    EXPECT_FALSE(is_digits(text)) << text;
}

TEST(Text, LettersAndDigitsAreThoseOfAscii) {
  for (const char c : std::string_view("azAZ09")) EXPECT_TRUE(is_letter_or_digit(c)) << c;
  for (const char c : std::string_view("`{@[/:_-\xE4")) EXPECT_FALSE(is_letter_or_digit(c)) << c;
}

TEST(Text, VisibleIsWhatHasInkInAscii) {
  for (const char c : std::string_view("!aZ0~")) EXPECT_TRUE(is_visible(c)) << c;
  for (const char c : std::string_view(" \t\n\x7F\xE4")) EXPECT_FALSE(is_visible(c)) << static_cast<int>(c);
}

TEST(Text, IsEqualWhateverTheCaseOfAsciiLetters) {
  EXPECT_TRUE(equal_ignoring_case("Content-LENGTH", "content-length"));
  EXPECT_FALSE(equal_ignoring_case("hosts", "host"));
  EXPECT_FALSE(equal_ignoring_case("@[", "`{"));      // beside the letters
  EXPECT_FALSE(equal_ignoring_case("\xC4", "\xE4"));  // letters of Latin 1
}

}  // namespace
}  // namespace berth::model
