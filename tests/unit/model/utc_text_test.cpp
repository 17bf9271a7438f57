// SPDX-License-Identifier: Apache-2.0
#include "model/utc_text.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

TEST(UtcText, IsInWholeSecondsOfUtc) {
  EXPECT_EQ(utc_text(0, "%Y-%m-%dT%H:%M:%SZ"), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(1'000'000'000.9, "%Y-%m-%d %H:%M:%S UTC"), "2001-09-09 01:46:40 UTC");
}

}  // namespace
}  // namespace berth::model
