// SPDX-License-Identifier: Apache-2.0
#include "model/progress.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::model {
namespace {

TEST(Progress, IsAFractionOrAShare) {
  for (const auto& [text, fraction] :
       std::initializer_list<std::pair<const char*, double>>{{"0", 0},
                                                             {"1", 1},
                                                             {"0.42", 0.42},
                                                             {".5", 0.5},
                                                             {"1e-3", 0.001},
                                                             {"42/100", 0.42},
                                                             {" 3 / 4\r\n", 0.75},
                                                             {"0/7", 0},
                                                             {"7/7", 1},
                                                             {"1.5/3", 0.5}}) {
    const auto parsed = parse_progress(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_DOUBLE_EQ(*parsed, fraction) << text;
  }
}

TEST(Progress, RefusesEverythingElse) {
  for (const std::string text :
       {"",    " ",   "x", "1.01", "-0", "-0.1",  "nan",     "inf", "42%",  "101/100",
        "1/0", "0/0", "/", "1/",   "/2", "1/2/3", "0.4 0.5", "0x1", "+0.5", "1,5"}) {
    const auto parsed = parse_progress(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind(), ErrorKind::invalid_input);
  }
}

TEST(ProgressFile, ExpandsTheNamesOfAUnit) {
  const auto path = [](const char* pattern, const char* cgroup) {
    return expand_progress_file(pattern, cgroup).value_or("?");
  };
  EXPECT_EQ(path("/run/x", "a/b.service"), "/run/x");
  EXPECT_EQ(path("/run/%n", "system.slice/job@7.service"), "/run/job@7.service");
  EXPECT_EQ(path("/run/%p/%i/100%%", "system.slice/job@7.service"), "/run/job/7/100%");
  EXPECT_EQ(path("/run/%p", "machine.slice/libpod-ab.scope"), "/run/libpod-ab");
  EXPECT_EQ(path("/run/%p", "batch/image.2"), "/run/image.2");
  EXPECT_EQ(path("/run/%p.%i", "top"), "/run/top.");
}

TEST(ProgressFile, RefusesWhatIsNoPlace) {
  for (const auto& [pattern, why] :
       std::initializer_list<std::pair<const char*, const char*>>{{"", "not an absolute path"},
                                                                  {"run/x", "not an absolute path"},
                                                                  {"/run/%x", "\"%x\" is no specifier"},
                                                                  {"/run/%", "is no specifier"},
                                                                  {"/run/../x", "component \"..\""},
                                                                  {"/./x", "component \".\""},
                                                                  {"/run/", "ends with a slash"},
                                                                  {"/run/a\nb", "control character"}}) {
    const auto path = expand_progress_file(pattern, "a/b.service");
    ASSERT_FALSE(path) << pattern;
    EXPECT_EQ(path.error().kind(), ErrorKind::invalid_input);
    EXPECT_THAT(path.error().message(), testing::HasSubstr(why)) << pattern;
  }
}

// A user that may name a cgroup must not thereby choose another place.
TEST(ProgressFile, ANameCannotLeadUpwards) {
  EXPECT_FALSE(expand_progress_file("/run/%p/progress", "user.slice/..@x.service"));
  EXPECT_FALSE(expand_progress_file("/run/%i/progress", "user.slice/x@...service"));
  EXPECT_FALSE(expand_progress_file("/run/%i", "user.slice/x.service"));
}

}  // namespace
}  // namespace berth::model
