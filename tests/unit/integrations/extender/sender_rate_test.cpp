// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/sender_rate.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::extender {
namespace {

TEST(ExtenderSenderRate, FindsTheHostOfASnapshotWithoutReadingIt) {
  EXPECT_EQ(named_host(R"({"schema":"berth.snapshot/1","host":"n1","time":1})"), "n1");
  EXPECT_EQ(named_host("{ \"host\" :\n \"n1\" , broken"), "n1");
  // That of the first level.
  EXPECT_EQ(named_host(R"({"a":{"host":"x"},"b":[{"host":"y"}],"c":"\"host\":\"z\"","host":"n1"})"), "n1");
  EXPECT_EQ(named_host(R"({"a":"host","host":"n1"})"), "n1");
  for (const char* none : {"", "{", "[]", "\"", "{\"host\"", R"({"host":)", R"({"host":1})", R"({"host":"})",
                           R"({"host":""})", R"({"host":"\u006e1"})", R"({"a":{"host":"n1"}})"})
    EXPECT_EQ(named_host(none), std::nullopt) << none;
  EXPECT_EQ(named_host(R"({"host":")" + std::string(253, 'n') + "\"}"), std::string(253, 'n'));
  EXPECT_EQ(named_host(R"({"host":")" + std::string(254, 'n') + "\"}"), std::nullopt);
}

TEST(ExtenderSenderRate, TakesOneOfAHostInATime) {
  SenderRate rate(15);
  EXPECT_EQ(rate.wait_s("n1", 100), std::nullopt);
  EXPECT_EQ(rate.wait_s("n1", 101), 14);
  EXPECT_EQ(rate.wait_s("n2", 101), std::nullopt);
  EXPECT_EQ(rate.wait_s("n1", 114), 1);
  EXPECT_EQ(rate.wait_s("n1", 115), std::nullopt);
  EXPECT_EQ(rate.wait_s("n1", 116), 14);
  SenderRate none(0);
  EXPECT_EQ(none.wait_s("n1", 100), std::nullopt);
  EXPECT_EQ(none.wait_s("n1", 100), std::nullopt);
}

TEST(ExtenderSenderRate, KeepsALimitedNumberOfNames) {
  SenderRate rate(15, 100);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(rate.wait_s("n" + std::to_string(i), 100), std::nullopt);
  EXPECT_EQ(rate.names(), 100U);
  EXPECT_EQ(rate.wait_s("n999", 100), 15);
  EXPECT_EQ(rate.wait_s("n0", 100), std::nullopt);
  // They go with their time.
  EXPECT_EQ(rate.wait_s("x", 115), std::nullopt);
  EXPECT_EQ(rate.names(), 1U);
}

}  // namespace
}  // namespace berth::extender
