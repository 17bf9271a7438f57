// SPDX-License-Identifier: Apache-2.0
#include "os/resident_memory.h"

#include <array>
#include <fstream>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

namespace berth::os {

namespace {

long resident_file_pages() {
  std::ifstream statm("/proc/self/statm");
  long size = 0;
  long resident = 0;
  long shared = 0;
  statm >> size >> resident >> shared;
  return shared;
}

constexpr std::array<int, 4096> kConstants = [] {
  std::array<int, 4096> made{};
  std::iota(made.begin(), made.end(), 1);
  return made;
}();
int written = 42;

}  // namespace

TEST(ResidentMemory, PagesOfFilesGoAndComeBackAsTheyAreUsed) {
  volatile int sum = 0;
  for (const int value : kConstants) sum = sum + value;
  written = 43;
  const long before = resident_file_pages();
  release_start_memory();
  EXPECT_LT(resident_file_pages(), before);
  int again = 0;
  for (const int value : kConstants) again += value;
  EXPECT_EQ(again, sum);
  EXPECT_EQ(written, 43) << "what was written stays";
  EXPECT_EQ(std::string("libraries") + " too", "libraries too");
}

}  // namespace berth::os
