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

TEST(Name, RefusesControlCharacters) {
  EXPECT_FALSE(is_name("a\x1b[31m"));
  EXPECT_FALSE(is_name("a\x7f"));
  EXPECT_FALSE(is_name(std::string("a\0b", 3)));
}

TEST(Name, RefusesNoncharactersAndTakesTheirNeighbours) {
  EXPECT_FALSE(is_name("\xEF\xBF\xBE"));      // U+FFFE
  EXPECT_FALSE(is_name("\xEF\xB7\x90"));      // U+FDD0
  EXPECT_FALSE(is_name("\xEF\xB7\xAF"));      // U+FDEF
  EXPECT_FALSE(is_name("\xF0\x9F\xBF\xBF"));  // U+1FFFF
  EXPECT_TRUE(is_name("\xEF\xBF\xBD"));       // U+FFFD
  EXPECT_TRUE(is_name("\xEF\xB7\xB0"));       // U+FDF0
}

TEST(Name, IsOneByteAtLeastAndNoLongerThanAPath) {
  EXPECT_FALSE(is_name(""));
  EXPECT_TRUE(is_name(std::string(kMaxNameBytes, 'a')));
  EXPECT_FALSE(is_name(std::string(kMaxNameBytes + 1, 'a')));
}

}  // namespace
}  // namespace berth::model
