// SPDX-License-Identifier: Apache-2.0
#include "ebpf/collector.h"

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

TEST(Collector, WithoutItEveryFigureIsMissingForThatReason) {
  const auto rungs = rungs_without(model::Error(model::ErrorKind::permission, "not allowed"));
  EXPECT_EQ(rungs.size(), 5U);
  for (const Rung& rung : rungs) {
    EXPECT_FALSE(rung.available) << rung.figure;
    EXPECT_EQ(rung.rung, "none");
    EXPECT_EQ(rung.detail, "not allowed");
  }
}

}  // namespace
}  // namespace berth::ebpf
