// SPDX-License-Identifier: Apache-2.0
// How berthd starts on different hosts.
#include "tests/unit/daemon/daemon_fixture.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <systemd/sd-event.h>
#include <unistd.h>

namespace berth::daemon {
namespace {

using DaemonTest = test::DaemonFixture;
using nlohmann::json;

TEST_F(DaemonTest, ObserveOptionHoldsAgainstTheConfiguration) {
  load_node();
  configure("mode = \"enforce\"\n");
  auto options = node.options();
  options.observe = true;
  auto started = Daemon::start(options, node.settings(), clock());
  ASSERT_TRUE(started);
  EXPECT_EQ((*started)->control().mode(), "observe");
  ASSERT_TRUE((*started)->reload());
  EXPECT_EQ((*started)->control().mode(), "observe");
}

TEST_F(DaemonTest, WithoutAnUndoJournalItObserves) {
  load_node();
  const auto in_the_way = node.runtime_dir() / "undo.db";
  std::filesystem::create_directory(in_the_way);
  configure("mode = \"enforce\"\n");
  start();
  const auto before = node.tree_bytes();
  tick();
  EXPECT_EQ(daemon->control().mode(), "observe");
  EXPECT_EQ(node.tree_bytes(), before);
  EXPECT_EQ(capability("undo-journal")["available"], false);
  EXPECT_NE(capability("undo-journal")["detail"].get<std::string>().find(in_the_way.string()),
            std::string::npos)
      << capability("undo-journal");
  const auto set = daemon->set_mode("enforce");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().kind(), model::ErrorKind::unavailable);

  std::filesystem::remove(in_the_way);
  ASSERT_TRUE(daemon->reload());
  EXPECT_EQ(capability("undo-journal")["available"], true);
  EXPECT_TRUE(daemon->set_mode("enforce"));
}

TEST_F(DaemonTest, MetricsAreServedAtATickOnceTheyCanBe) {
  load_node();
  const auto directory = node.runtime_dir() / "later";
  configure("[metrics]\nlisten = \"" + (directory / "metrics").string() + "\"\n");
  sd_event* raw = nullptr;
  ASSERT_GE(sd_event_new(&raw), 0);
  const std::unique_ptr<sd_event, decltype(&sd_event_unref)> event(raw, sd_event_unref);
  start().serve_metrics(raw);
  tick();
  EXPECT_EQ(capability("metrics")["available"], false);
  std::filesystem::create_directory(directory);
  now = now + 60;
  tick();
  EXPECT_EQ(capability("metrics")["available"], true) << capability("metrics");
  daemon->leave_loop();
}

TEST_F(DaemonTest, WithoutAStateDirectoryItEnforcesAndSaysWhatItLacks) {
  load_node();
  std::filesystem::remove_all(node.state_dir());
  configure("mode = \"enforce\"\n");
  start();
  tick();
  EXPECT_EQ(daemon->control().mode(), "enforce");
  EXPECT_EQ(capability("decision-log")["available"], false);
  std::filesystem::create_directories(node.state_dir());
  ASSERT_TRUE(daemon->reload());
  EXPECT_EQ(capability("decision-log")["available"], true);
}

TEST_F(DaemonTest, AStateDirectoryThatIsAFileIsSaid) {
  load_node();
  std::filesystem::remove_all(node.state_dir());
  std::ofstream(node.state_dir()) << "not a directory";
  configure("mode = \"enforce\"\n");
  start();
  tick();
  EXPECT_EQ(capability("decision-log")["available"], false);
}

TEST_F(DaemonTest, WithoutACpusetControllerItObserves) {
  load_node();
  node.put("", "cgroup.controllers", "cpu memory");
  configure("mode = \"enforce\"\n");
  start();
  tick();
  EXPECT_EQ(daemon->control().mode(), "observe");
  EXPECT_EQ(capability("cpuset-controller")["available"], false);
  const auto set = daemon->set_mode("enforce");
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().message().find("cpuset"), std::string::npos);
}

TEST_F(DaemonTest, ASecondDaemonOnTheSameStateIsRefused) {
  start();
  const auto second = Daemon::start(node.options(), node.settings(), clock());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("held by another berthd"), std::string::npos)
      << second.error().message();
}

TEST_F(DaemonTest, ASecondDaemonWithAStateDirectoryOfItsOwnIsRefusedToo) {
  start();
  auto options = node.options();
  options.state_dir = node.state_dir() / "other";
  std::filesystem::create_directory(options.state_dir);
  const auto second = Daemon::start(options, node.settings(), clock());
  ASSERT_FALSE(second);
  const std::string said = second.error().message();
  EXPECT_NE(said.find("this host is held by another berthd (pid " + std::to_string(getpid())),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("systemctl stop berthd.service"), std::string::npos) << said;
  daemon.reset();
  EXPECT_TRUE(Daemon::start(options, node.settings(), clock()));
}

// A daemon on a tree of ordinary files has nothing to do with this host's own.
TEST_F(DaemonTest, TheLockOfAnotherTreeIsAnotherLock) {
  start();
  test::FakeNode other;
  other.configure("");
  EXPECT_TRUE(Daemon::start(other.options(), other.settings(), clock()));
}

TEST_F(DaemonTest, WithoutACgroupTreeItDoesNotStart) {
  auto options = node.options();
  options.cgroup_root = node.tree() / "nothing/here";
  const auto started = Daemon::start(options, node.settings(), clock());
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
  const auto newest = json::parse(daemon->control().log_json(1))["entries"][0];
  EXPECT_EQ(newest["result"], "restored");
}

}  // namespace
}  // namespace berth::daemon
