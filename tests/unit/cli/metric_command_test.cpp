// SPDX-License-Identifier: Apache-2.0
// The user's own number.
#include "cli/metric_command.h"

#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace berth::cli {
namespace {

// Of a command that ends by itself.
std::string number_or_problem(const std::string& command) {
  MetricCommand metric(command);
  metric.start(7.9);
  siginfo_t info{};
  waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
  const auto number = metric.number();
  return number ? std::to_string(*number) : number.error().message();
}

TEST(MetricCommand, ItsNumberMayHaveBlanksAround) {
  EXPECT_EQ(number_or_problem("echo '  12.5 '"), "12.500000");
  EXPECT_EQ(number_or_problem("printf -- -3e2"), "-300.000000");
}

TEST(MetricCommand, ItKnowsHowLongItMayMeasure) {
  EXPECT_EQ(number_or_problem("echo $BERTH_TRIAL_SECONDS"), "7.000000");
}

TEST(MetricCommand, AnythingElseIsNoNumber) {
  for (const char* text : {"", "12 ms", "nan", "inf", "1 2", "0x10"}) {
    const auto number = parse_metric(text);
    ASSERT_FALSE(number) << text;
  }
  EXPECT_NE(number_or_problem("echo 12 ms").find("printed \"12 ms"), std::string::npos);
}

TEST(MetricCommand, AFailureIsTold) {
  EXPECT_NE(number_or_problem("echo 12; exit 3").find("failed with status 3"), std::string::npos);
}

TEST(MetricCommand, OneThatStillRunsIsKilled) {
  MetricCommand metric("echo 1; exec sleep 1000");
  metric.start(5);
  const auto number = metric.number();
  ASSERT_FALSE(number);
  EXPECT_NE(number.error().message().find("still ran"), std::string::npos);
  EXPECT_FALSE(metric.number()) << "and runs no more";
}

}  // namespace
}  // namespace berth::cli
