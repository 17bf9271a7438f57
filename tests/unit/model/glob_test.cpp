// SPDX-License-Identifier: Apache-2.0
#include "model/glob.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::model {
namespace {

TEST(Glob, WithoutWildcardsMatchesItselfOnly) {
  EXPECT_TRUE(glob_match("system.slice/nginx.service", "system.slice/nginx.service"));
  EXPECT_FALSE(glob_match("system.slice/nginx.service", "system.slice/nginx.servicex"));
  EXPECT_FALSE(glob_match("system.slice/nginx.service", "system.slice/nginx.servic"));
  EXPECT_FALSE(glob_match("a", ""));
}

TEST(Glob, AStarStopsAtASlash) {
  EXPECT_TRUE(glob_match("system.slice/web@*.service", "system.slice/web@1.service"));
  EXPECT_TRUE(glob_match("a/*", "a/b"));
  EXPECT_TRUE(glob_match("a/*b*", "a/b"));
  EXPECT_FALSE(glob_match("a/*", "a/b/c"));
  EXPECT_FALSE(glob_match("*", "a/b"));
  EXPECT_FALSE(glob_match("a*c", "a/c"));
  EXPECT_TRUE(glob_match("*x/*y", "axbx/y"));
  EXPECT_FALSE(glob_match("*x/*y", "ax/b/y"));
}

TEST(Glob, TwoStarsDoNot) {
  EXPECT_TRUE(glob_match("**", "a/b/c"));
  EXPECT_TRUE(glob_match("a/**", "a/b/c"));
  EXPECT_FALSE(glob_match("a/**", "a"));
  EXPECT_TRUE(glob_match("a**c", "a/b/c"));
  EXPECT_TRUE(glob_match("**c", "a/b/c"));
  EXPECT_TRUE(glob_match("a/**/*.scope", "a/b/c/d.scope"));
  EXPECT_FALSE(glob_match("a/**/*.scope", "a/b/c/d.scope/e"));
}

TEST(Glob, TwoStarsAndASlashMatchNoComponentToo) {
  EXPECT_TRUE(glob_match("**/web.service", "web.service"));
  EXPECT_TRUE(glob_match("**/web.service", "a/b/web.service"));
  EXPECT_FALSE(glob_match("**/web.service", "a/myweb.service"));
  EXPECT_TRUE(glob_match("a/**/b", "a/b"));
  EXPECT_FALSE(glob_match("a/**/b", "ab"));
  EXPECT_TRUE(glob_match("**/a/**/b/*", "x/a/y/a/z/b/c"));
}

TEST(Glob, AQuestionMarkIsOneCharacterButASlash) {
  EXPECT_TRUE(glob_match("a?c", "abc"));
  EXPECT_FALSE(glob_match("a?c", "a/c"));
  EXPECT_FALSE(glob_match("a?c", "ac"));
}

TEST(Glob, SetsHoldCharactersAndRanges) {
  EXPECT_TRUE(glob_match("web@[0-9].service", "web@7.service"));
  EXPECT_FALSE(glob_match("web@[0-9].service", "web@x.service"));
  EXPECT_TRUE(glob_match("a[!0-9]c", "abc"));
  EXPECT_FALSE(glob_match("a[!0-9]c", "a1c"));
  EXPECT_FALSE(glob_match("a[!x]c", "a/c"));
  EXPECT_TRUE(glob_match("a[]]c", "a]c"));
  EXPECT_TRUE(glob_match("a[x-]c", "a-c"));
  EXPECT_TRUE(glob_match("a[*]c", "a*c"));
  EXPECT_FALSE(glob_match("a[*]c", "abc"));
}

TEST(Glob, ABackslashIsItself) { EXPECT_TRUE(glob_match("foo\\x2d*.service", "foo\\x2dbar.service")); }

TEST(Glob, ManyStarsDoNotTakeForever) {
  const std::string path(4000, 'a');
  EXPECT_FALSE(glob_match("*a*a*a*a*a*a*a*a*a*a*b", path));
  EXPECT_FALSE(glob_match("**a**a**a**a**a**a**a**b", path));
  EXPECT_FALSE(glob_match("**/*a*a*a*a*a*a*a*a/**/b", path));
}

TEST(Glob, WhatIsRefusedMatchesNothing) {
  EXPECT_FALSE(glob_match("", ""));
  EXPECT_FALSE(glob_match("/a", "/a"));
  EXPECT_FALSE(glob_match("a***", "abc"));
  EXPECT_FALSE(glob_match("a/../b", "a/../b"));
  EXPECT_FALSE(glob_match(std::string("[\0]", 3), std::string(1, '\0')));
}

TEST(GlobCheck, AcceptsWhatMatches) {
  for (const char* pattern :
       {"a", "*", "**", "a/**/b*", "[ab]", "[]]", "[!]]", "[a-z]", "[-a]", "a\\x2db", "a-b", "..a"}) {
    const auto checked = check_glob(pattern);
    EXPECT_TRUE(checked) << pattern << ": " << checked.error().message();
  }
}

TEST(GlobCheck, SaysWhatIsWrongAndWhere) {
  struct Case {
    const char* pattern;
    const char* message;
  };
  const Case cases[] = {{"", "glob is empty"},
                        {"/a", "no leading slash"},
                        {"a//b", "two slashes"},
                        {"a/", "slash at the end"},
                        {"a/../b", "never match"},
                        {".", "never match"},
                        {"a[b", "character 2: '[' without ']'"},
                        {"a[]", "'[' without ']'"},
                        {"a[b/c]", "cannot hold '/'"},
                        {"[z-a]", "descends"},
                        {"[!z-a]", "descends"},
                        {"a***", "three stars"}};
  for (const Case& each : cases) {
    const auto checked = check_glob(each.pattern);
    ASSERT_FALSE(checked) << each.pattern;
    EXPECT_EQ(checked.error().kind(), ErrorKind::invalid_input);
    EXPECT_NE(checked.error().message().find(each.message), std::string::npos) << checked.error().message();
  }
  EXPECT_FALSE(check_glob(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace berth::model
