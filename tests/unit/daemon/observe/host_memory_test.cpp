// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/host_memory.h"

#include "tests/unit/daemon/fake_node.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

TEST(HostLoad, ReadsMemoryPressureAndLoad) {
  const test::FakeNode node;
  const auto load = read_host_load(node.proc());
  EXPECT_EQ(load.memory.total_bytes, 16384U * 1024);
  EXPECT_EQ(load.memory.available_bytes, 8192U * 1024);
  EXPECT_DOUBLE_EQ(load.memory.psi_full_avg10, 1.25);
  EXPECT_DOUBLE_EQ(load.load1, 3.2);
  EXPECT_TRUE(load.missing.empty());
}

TEST(HostLoad, SaysWhatIsMissingAndReadsTheRest) {
  const test::FakeNode node;
  std::filesystem::remove_all(node.proc() / "pressure");
  const auto load = read_host_load(node.proc());
  ASSERT_EQ(load.missing.size(), 1U);
  EXPECT_NE(load.missing[0].find("pressure/memory"), std::string::npos);
  EXPECT_EQ(load.memory.total_bytes, 16384U * 1024);
  EXPECT_DOUBLE_EQ(load.load1, 3.2);
}

TEST(HostLoad, GarbageIsMissingToo) {
  const test::FakeNode node;
  std::ofstream(node.proc() / "meminfo") << "MemTotal: lots\n";
  std::ofstream(node.proc() / "loadavg") << "high\n";
  std::ofstream(node.proc() / "pressure/memory") << "some avg10=1\n";
  EXPECT_EQ(read_host_load(node.proc()).missing.size(), 3U);
}

}  // namespace
}  // namespace berth::daemon
