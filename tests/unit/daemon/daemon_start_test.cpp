// SPDX-License-Identifier: Apache-2.0
// How berthd starts on different hosts.
#include "tests/unit/daemon/daemon_fixture.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using DaemonTest = test::DaemonFixture;
using nlohmann::json;

TEST_F(DaemonTest, ObserveOptionHoldsAgainstTheConfiguration) {
  load_node();
  configure("mode = \"enforce\"\n");
  auto options = node.options();
  options.observe = true;
  auto started = Daemon::start(options, node.settings(), [this] { return now; });
  ASSERT_TRUE(started);
  EXPECT_EQ((*started)->mode(), "observe");
  ASSERT_TRUE((*started)->reload());
  EXPECT_EQ((*started)->mode(), "observe");
}

TEST_F(DaemonTest, WithoutAStateDirectoryItObserves) {
  load_node();
  std::filesystem::remove_all(node.state_dir());
  configure("mode = \"enforce\"\n");
  start();
  const auto before = node.tree_bytes();
  tick();
  EXPECT_EQ(daemon->mode(), "observe");
  EXPECT_EQ(node.tree_bytes(), before);
  EXPECT_EQ(capability("undo-journal")["available"], false);
  EXPECT_NE(capability("undo-journal")["detail"].get<std::string>().find(node.state_dir().string()),
            std::string::npos)
      << capability("undo-journal");
  EXPECT_EQ(capability("decision-log")["available"], false);
  const auto set = daemon->set_mode("enforce");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind(), model::ErrorKind::unavailable);

  std::filesystem::create_directories(node.state_dir());
  ASSERT_TRUE(daemon->reload());
  EXPECT_EQ(capability("undo-journal")["available"], true);
  EXPECT_EQ(capability("decision-log")["available"], true);
  EXPECT_TRUE(daemon->set_mode("enforce"));
}

TEST_F(DaemonTest, AStateDirectoryThatIsAFileIsSaid) {
  load_node();
  std::filesystem::remove_all(node.state_dir());
  std::ofstream(node.state_dir()) << "not a directory";
  configure("mode = \"enforce\"\n");
  start();
  tick();
  EXPECT_EQ(daemon->mode(), "observe");
  EXPECT_EQ(capability("undo-journal")["available"], false);
}

TEST_F(DaemonTest, WithoutACpusetControllerItObserves) {
  load_node();
  node.put("", "cgroup.controllers", "cpu memory");
  configure("mode = \"enforce\"\n");
  start();
  tick();
  EXPECT_EQ(daemon->mode(), "observe");
  EXPECT_EQ(capability("cpuset-controller")["available"], false);
  const auto set = daemon->set_mode("enforce");
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().message().find("cpuset"), std::string::npos);
}

TEST_F(DaemonTest, ASecondDaemonOnTheSameStateIsRefused) {
  start();
  const auto second = Daemon::start(node.options(), node.settings(), [this] { return now; });
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("held by another berthd"), std::string::npos)
      << second.error().message();
}

TEST_F(DaemonTest, WithoutACgroupTreeItDoesNotStart) {
  auto options = node.options();
  options.cgroup_root = node.tree() / "nothing/here";
  const auto started = Daemon::start(options, node.settings(), [this] { return now; });
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message().find("cgroup v2"), std::string::npos) << started.error().message();
}

TEST_F(DaemonTest, WhatACrashLeftIsPutBackAtTheNextStart) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  ASSERT_NE(node.cpus("web/a"), "");
  daemon.reset();  // without stop(), as a crash
  configure("");
  start();
  EXPECT_EQ(node.cpus("web/a"), "");
  EXPECT_EQ(node.cpus("batch/x"), "0-7");
  const auto newest = json::parse(daemon->log_json(1))["entries"][0];
  EXPECT_EQ(newest["result"], "restored");
}

}  // namespace
}  // namespace berth::daemon
