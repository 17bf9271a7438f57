// SPDX-License-Identifier: Apache-2.0
#include "cli/similar.h"

#include "cli/pager.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using Words = std::vector<std::string>;

const Words kKnown{"status", "set", "top", "topology", "restore", "reload", "check-config"};

TEST(Similar, ATypingErrorIsUnderstood) {
  EXPECT_EQ(similar_to("stauts", kKnown), Words{"status"}) << "swapped";
  EXPECT_EQ(similar_to("statu", kKnown), Words{"status"}) << "missing";
  EXPECT_EQ(similar_to("statuss", kKnown), Words{"status"}) << "too many";
  EXPECT_EQ(similar_to("stat", kKnown), Words{"status"}) << "a beginning";
  EXPECT_EQ(similar_to("chekc-cofnig", kKnown), Words{"check-config"});
  EXPECT_EQ(similar_to("frobnicate", kKnown), Words());
}

TEST(Similar, TheNearestAreNamed) {
  EXPECT_EQ(similar_to("tops", kKnown), Words{"top"});
  EXPECT_EQ(similar_to("re", kKnown), (Words{"restore", "reload"}));
  EXPECT_EQ(similar_to("", kKnown), Words());
  EXPECT_EQ(similar_to(std::string(100'000, 's'), kKnown), Words());
  EXPECT_EQ(did_you_mean("re", kKnown), "; did you mean restore or reload?");
  EXPECT_EQ(did_you_mean("x", {"xa", "xb", "xc", "xd"}), "; did you mean xa, xb or xc?");
  EXPECT_EQ(did_you_mean("frobnicate", kKnown), "");
}

TEST(RowsOf, LongLinesTakeMoreRows) {
  EXPECT_EQ(rows_of("", 80), 0U);
  EXPECT_EQ(rows_of("a\n\nb", 80), 3U);
  EXPECT_EQ(rows_of("a\nb\n", 80), 2U);
  EXPECT_EQ(rows_of(std::string(80, 'x') + "\n", 80), 1U);
  EXPECT_EQ(rows_of(std::string(81, 'x') + "\n", 80), 2U);
  EXPECT_EQ(rows_of(std::string(200, 'x') + "\n", 0), 1U);
  EXPECT_EQ(rows_of("\x1b[31m" + std::string(79, 'x') + "\x1b[0m\n", 79), 1U) << "colours take no room";
}

}  // namespace
}  // namespace berth::cli
