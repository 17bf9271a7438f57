// SPDX-License-Identifier: Apache-2.0
#include "ebpf/collector.h"

#include "ebpf/switch.h"
#include "ebpf/walker.h"
#include "tests/temporary_directory.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace berth::ebpf {
namespace {

TEST(Collector, WithoutBtfSaysSo) {
  Options options;
  options.sys_root = "/nonexistent";
  options.cgroup_root = "/nonexistent";
  const auto started = Collector::start(options);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().kind(), model::ErrorKind::unavailable);
  EXPECT_NE(started.error().message().find("/nonexistent/kernel/btf/vmlinux"), std::string::npos);
}

TEST(Collector, OnlyCpusThatAreOnlineHaveTables) {
  const test::TemporaryDirectory sys;
  std::filesystem::create_directories(sys.path() / "devices/system/cpu");
  std::ofstream(sys.path() / "devices/system/cpu/online") << "0\n";
  EXPECT_EQ(cpus_to_count(sys.path()), (model::CpuSet{0}));
  EXPECT_TRUE(cpus_to_count("/nonexistent").contains(0));
}

TEST(Collector, WithoutItEveryFigureIsMissingForThatReason) {
  const auto ways = ways_without(model::Error(model::ErrorKind::permission, "not allowed"));
  EXPECT_EQ(ways.size(), 5U);
  for (const FigureWay& way : ways) {
    EXPECT_FALSE(way.available) << way.figure;
    EXPECT_EQ(way.way, "none");
    EXPECT_EQ(way.detail, "not allowed");
  }
}

TEST(TreeScan, FindsParentsBeforeTheirChildren) {
  const test::TemporaryDirectory tree;
  std::filesystem::create_directories(tree.path() / "a/b");
  const auto found = scan_tree(tree.path());
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 3U);
  EXPECT_EQ((*found)[1].parent, (*found)[0].id);
  EXPECT_EQ((*found)[2].parent, (*found)[1].id);
}

TEST(TreeScan, TreesThatAreTooDeepAreNotScanned) {
  const test::TemporaryDirectory tree;
  std::filesystem::path deep = tree.path();
  for (int level = 0; level < 100; ++level) deep /= "d";
  std::filesystem::create_directories(deep);
  const auto found = scan_tree(tree.path());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind(), model::ErrorKind::unavailable);
}

}  // namespace
}  // namespace berth::ebpf
