// SPDX-License-Identifier: Apache-2.0
#include "cli/cpu_use.h"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using Use = std::map<int, double>;

Use between(const char* before, const char* after) {
  return cpu_use(parse_cpu_times(before), parse_cpu_times(after));
}

TEST(CpuUse, IsTheShareThatWasNeitherIdleNorWaiting) {
  // user nice system idle iowait irq softirq steal guest guest_nice; guest is part of user.
  EXPECT_EQ(
      between("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 100 0 0 900 0 0 0 0 50 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n",
              "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 110 5 5 960 20 0 0 0 60 0\ncpu1 1 1 1 0 0 1 1 5 0 0\nintr 5\n"),
      (Use{{0, 0.2}, {1, 1.0}}));
}

TEST(CpuUse, IsUnknownWhereAVcpuWasOfflineOrNoTimePassed) {
  EXPECT_EQ(
      between("cpu0 1 0 0 1 0 0 0 0\ncpu2 1 0 0 1 0 0 0 0\n", "cpu0 1 0 0 1 0 0 0 0\ncpu1 1 0 0 1 0 0 0 0\n"),
      Use{});
}

TEST(CpuUse, IsUnknownWhereTheKernelsFiguresGoBack) {
  EXPECT_EQ(between("cpu0 10 0 0 10 0 0 0 0\ncpu1 10 0 0 100 0 0 0 0\n",
                    "cpu0 9 0 0 30 0 0 0 0\ncpu1 40 0 0 90 0 0 0 0\n"),
            Use{});
}

TEST(CpuUse, LinesThatAreNotUnderstoodAreLeftOut) {
  for (const char* text :
       {"", "\n", "cpu", "cpu0", "cpu0 1 2 3", "cpux 1 2 3 4 5 6 7 8", "cpu-1 1 2 3 4 5 6 7 8",
        "cpu0 1 2 3 4 5 6 7 x", "cpu99999999999 1 2 3 4 5 6 7 8", "cpu0 -1 2 3 4 5 6 7 8"}) {
    EXPECT_TRUE(parse_cpu_times(text).empty()) << text;
  }
  EXPECT_EQ(parse_cpu_times("cpu0 1 2 3 4 5 6 7 8").at(0).total, 36U) << "without a line end";
}

TEST(CpuUse, OfThisHostIsRead) { EXPECT_FALSE(read_cpu_times().empty()); }

}  // namespace
}  // namespace berth::cli
