// SPDX-License-Identifier: Apache-2.0
#include "os/log.h"

#include "model/plain_text.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace berth::os {
namespace {

// Logs to standard error as on a terminal, whatever the journal has to do with this test.
std::string logged(const std::string& text) {
  testing::internal::CaptureStderr();
  setup_log();
  log_warning("{} vanished", text);
  return testing::internal::GetCapturedStderr();
}

TEST(Log, AMessageIsOneLineWhateverNamesAreInIt) {
  EXPECT_EQ(logged("web"), "berthd: warning: web vanished\n");
  EXPECT_EQ(logged("a\nberthd: info: all is well\x1b[2J\xff\xE2\x80\xAE"),
            "berthd: warning: a\\nberthd: info: all is well\\x1b[2J\\xff\\u202e vanished\n");
}

TEST(Log, AMessageIsShortAndKeepsItsEnd) {
  const std::string line = logged(std::string(1 << 20, '\n'));
  EXPECT_LT(line.size(), model::kMostLineBytes + 32);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_TRUE(line.ends_with(" vanished\n"));
}

}  // namespace
}  // namespace berth::os
