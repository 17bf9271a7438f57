// SPDX-License-Identifier: Apache-2.0
#include "model/name.h"

#include "model/json.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::model {
namespace {

TEST(Name, TakesTextOfAnyScript) {
  for (const char* name :
       {"a", "system.slice/web@1.service", "caf\xC3\xA9", "\xE6\xBC\xA2", "\xF0\x9F\x98\x80", "a b", "\\x2d"})
    EXPECT_TRUE(is_name(name)) << name;
}

TEST(Name, RefusesWhatIsNotUtf8) {
  for (const char* name :
       {"\xFF", "a\x80", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE6\xBC"})
    EXPECT_FALSE(is_name(name)) << name;
}

TEST(Name, RefusesACharacterWithoutAllOfItsBytes) {
  for (const char* name : {"\xE6", "\xE6z", "\xE6\xBCz", "\xF0", "\xF0z", "\xF0\x9F\x98z"})
    EXPECT_FALSE(is_name(name)) << name;
}

TEST(Name, RefusesControlCharacters) {
  EXPECT_FALSE(is_name("a\x1b[31m"));
  EXPECT_FALSE(is_name("a\x7f"));
  EXPECT_FALSE(is_name(std::string("a\0b", 3)));
}

TEST(Name, RefusesTheControlCharactersOfTwoBytes) {
  EXPECT_FALSE(is_name("\xC2\x80"));
  EXPECT_FALSE(
      is_name("a\xC2\x9B"
              "31m"));  // the one-character CSI
  EXPECT_FALSE(is_name("\xC2\x9F"));
  EXPECT_TRUE(is_name("\xC2\xA0"));  // the first that is none
  EXPECT_TRUE(is_name("\xC3\x80"));
}

TEST(Name, IsMadeOfAnyBytes) {
  EXPECT_EQ(to_name("node-a"), "node-a");
  EXPECT_EQ(to_name("caf\xC3\xA9"), "caf\xC3\xA9");
  EXPECT_EQ(to_name("a\x1b[31m\xff\xC2\x9B"), "a?[31m??");
  EXPECT_EQ(to_name(""), "?");
  EXPECT_EQ(to_name(std::string(2 * kMaxNameBytes, 'a')), std::string(kMaxNameBytes, 'a'));
  const std::string accents = to_name("a" + std::string(kMaxNameBytes, '\x01') + "\xC3\xA9");
  EXPECT_TRUE(is_name(accents));
}

TEST(Name, RefusesNoncharactersAndTakesTheirNeighbours) {
  EXPECT_FALSE(is_name("\xEF\xBF\xBE"));      // U+FFFE
  EXPECT_FALSE(is_name("\xEF\xB7\x90"));      // U+FDD0
  EXPECT_FALSE(is_name("\xEF\xB7\xAF"));      // U+FDEF
  EXPECT_FALSE(is_name("\xF0\x9F\xBF\xBF"));  // U+1FFFF
  EXPECT_TRUE(is_name("\xEF\xBF\xBD"));       // U+FFFD
  EXPECT_TRUE(is_name("\xEF\xB7\xB0"));       // U+FDF0
}

TEST(Name, IsShortenedInTheMiddleAndBetweenCharacters) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefg", 4), "ab…fg");
  EXPECT_EQ(shortened("a\xC3\xA9\xC3\xA9\xC3\xA9z", 4), "a…z");
  EXPECT_EQ(shortened(std::string(1000, '\x80'), 10), "…");
}

TEST(Name, IsOneByteAtLeastAndNoLongerThanAPath) {
  EXPECT_FALSE(is_name(""));
  EXPECT_TRUE(is_name(std::string(kMaxNameBytes, 'a')));
  EXPECT_FALSE(is_name(std::string(kMaxNameBytes + 1, 'a')));
}

}  // namespace
}  // namespace berth::model
