// SPDX-License-Identifier: Apache-2.0
#include "cli/log_options.h"

#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

// 2026-11-21 10:11:10 in a zone that is an hour ahead.
constexpr double kNow = 1795252270;
constexpr double kMidnight = kNow - 10 * 3600 - 11 * 60 - 10;

class Since : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* zone = std::getenv("TZ")) before_ = zone;
    setenv("TZ", "XYZ-1", 1);
    tzset();
  }
  void TearDown() override {
    if (before_) {
      setenv("TZ", before_->c_str(), 1);
    } else {
      unsetenv("TZ");
    }
    tzset();
  }
  static double since(const std::string& text) { return parse_since(text, kNow).value_or(-1); }
  std::optional<std::string> before_;
};

TEST_F(Since, AnAgeIsADuration) {
  for (const char* text : {"2h", "2h ago", "-2h", "7200", "1h 60min ago"}) {
    EXPECT_EQ(since(text), kNow - 7200) << text;
  }
}

TEST_F(Since, DaysAndTimesAreLocal) {
  EXPECT_EQ(since("today"), kMidnight);
  EXPECT_EQ(since("yesterday"), kMidnight - 86400);
  EXPECT_EQ(since("2026-11-21"), kMidnight);
  EXPECT_EQ(since("2026-11-20 10:11:10"), kNow - 86400);
  EXPECT_EQ(since("2026-11-21 10:11"), kNow - 10);
  EXPECT_EQ(since("10:11:10"), kNow);
  EXPECT_EQ(since("00:00"), kMidnight);
  EXPECT_EQ(since("@1795252270.5"), kNow + 0.5);
}

TEST_F(Since, OtherTextIsRefused) {
  for (const char* text : {"", "soon", "tomorrow", "2026-02-31", "25:00", "2026-11-21T10", "@", "@nan", "-",
                           "ago", "2026-11-21 10:11:10 x"}) {
    EXPECT_FALSE(parse_since(text, kNow)) << text;
  }
  EXPECT_EQ(parse_since("soon", kNow).error().exit, Exit::wrong_use);
}

}  // namespace
}  // namespace berth::cli
