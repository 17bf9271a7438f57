// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/snapshot_bounds.h"

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

std::optional<double> take(SenderRate& rate, const std::string& host, double now_s) {
  const auto wait_s = rate.wait_s(host, now_s);
  if (!wait_s) rate.count(host, now_s);
  return wait_s;
}

TEST(ExtenderSenderRate, TakesOneOfAHostInATime) {
  SenderRate rate(15);
  EXPECT_EQ(take(rate, "n1", 100), std::nullopt);
  EXPECT_EQ(take(rate, "n1", 101), 14);
  EXPECT_EQ(take(rate, "n2", 101), std::nullopt);
  EXPECT_EQ(take(rate, "n1", 114), 1);
  EXPECT_EQ(take(rate, "n1", 115), std::nullopt);
  EXPECT_EQ(take(rate, "n1", 116), 14);
  SenderRate none(0);
  EXPECT_EQ(take(none, "n1", 100), std::nullopt);
  EXPECT_EQ(take(none, "n1", 100), std::nullopt);
}

TEST(ExtenderSenderRate, OnlyWhatIsCountedMakesTheHostWait) {
  SenderRate rate(15);
  EXPECT_EQ(rate.wait_s("n1", 100), std::nullopt);
  EXPECT_EQ(rate.wait_s("n1", 100), std::nullopt);
  EXPECT_EQ(rate.names(), 0U);
  rate.count("n1", 100);
  rate.count("n1", 110);
  EXPECT_EQ(rate.wait_s("n1", 110), 5);
}

TEST(ExtenderSenderRate, KeepsALimitedNumberOfNames) {
  SenderRate rate(15, 100);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(take(rate, "n" + std::to_string(i), 100), std::nullopt);
  EXPECT_EQ(rate.names(), 100U);
  EXPECT_EQ(take(rate, "n999", 100), 15);
  EXPECT_EQ(take(rate, "n0", 100), std::nullopt);
  // They go with their time.
  EXPECT_EQ(take(rate, "x", 115), std::nullopt);
  EXPECT_EQ(rate.names(), 1U);
}

}  // namespace
}  // namespace berth::extender
