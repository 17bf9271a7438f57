// SPDX-License-Identifier: Apache-2.0
// Leaves of units that systemd manages: these are scopes.
#include "tests/unit/daemon/enforce/leaves_fixture.h"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

TEST_F(LeavesTest, OfAUnitItIsAScopeThatEndsWithIt) {
  systemd = true;
  set_up(kUnit);
  scopes.is.tasks_max = 4711;
  scopes.is.timeout_stop_us = 7000;
  tree.write(kUnit, "cpu.weight", "100\n");
  EXPECT_EQ(tick(), Told{}) << "nobody waits for systemd";
  ASSERT_EQ(scopes.asked.size(), 1U);
  const cgroup::Scope scope = scopes.asked[0];
  EXPECT_EQ(scope.unit, "spark-worker.service.berth-executor-7-70.scope");
  EXPECT_EQ(scope.slice, "system.slice");
  EXPECT_EQ(scope.stopped_with, "spark-worker.service");
  EXPECT_EQ(scope.pid, 7) << "whoever else it is told of could be another by then";
  EXPECT_EQ(scope.cpu_weight, 50);
  EXPECT_EQ(scope.io_weight, std::nullopt) << "the unit has none";
  EXPECT_EQ(scope.tasks_max, 4711U);
  EXPECT_EQ(scope.timeout_stop_us, 7000U);
  EXPECT_TRUE(moves.empty());
  EXPECT_EQ(tick(), Told{}) << "nor is another one begun";
  EXPECT_EQ(scopes.asked.size(), 1U);
  // systemd has done it; meanwhile another child was born.
  make_scope();
  proc.add_plain(6, "python3", kUnit, 8);
  enter(kUnit, 6);
  EXPECT_EQ(tick(), (Told{std::string("leaf ") + kScope + " applied"}));
  EXPECT_EQ(pids(kScope), "7\n6\n8\n");
  EXPECT_EQ(scopes.asked.size(), 2U) << "the other one's turn";
}

TEST_F(LeavesTest, AScopeThatDoesNotComeIsGivenUp) {
  systemd = true;
  set_up(kUnit);
  tick();
  now += 9.9;
  EXPECT_EQ(tick(), Told{});
  now += 0.2;
  const auto told = tick();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].find(std::string("leaf ") + kUnit +
                         " failed: systemd has not made spark-worker.service.berth-executor-7-70.scope"),
            0U);
  EXPECT_EQ(scopes.asked.back().unit, "spark-worker.service.berth-executor-9-90.scope")
      << "the other one's turn";
}

TEST_F(LeavesTest, WhatSystemdCannotBeAskedForIsTold) {
  systemd = true;
  no_bus = true;
  set_up(kUnit);
  EXPECT_EQ(tick(), Told{});
  EXPECT_NE(problem().find("berth cannot reach it"), std::string::npos);
  no_bus = false;
  scopes.is.bound = "spark-worker.service has MemoryMax= set";
  EXPECT_EQ(tick(),
            (Told{std::string("leaf ") + kUnit +
                  " failed: the executor would escape a setting: spark-worker.service has MemoryMax= set"}));
  scopes.is.bound.reset();
  scopes.refuses = model::ErrorKind::io;
  now += 61;
  EXPECT_EQ(tick(), (Told{std::string("leaf ") + kUnit + " failed: systemd: no"}));
  EXPECT_TRUE(scopes.asked.empty());
}

TEST_F(LeavesTest, ASystemdThatDoesNotAnswerIsLeftInPeaceForAMinute) {
  systemd = true;
  set_up(kUnit);
  scopes.silent = true;
  EXPECT_EQ(tick(), (Told{std::string("leaf ") + kUnit + " failed: systemd: no answer"}));
  EXPECT_EQ(scopes.calls, 1);
  EXPECT_EQ(tick(), Told{}) << "not for the other one either";
  EXPECT_NE(problem().find("systemd did not answer"), std::string::npos);
  EXPECT_EQ(scopes.calls, 1);
  scopes.silent = false;
  now += 61;
  tick();
  EXPECT_EQ(scopes.asked.size(), 1U);
}

TEST_F(LeavesTest, AScopeCanComeThoughNobodyAnswered) {
  systemd = true;
  set_up(kUnit);
  scopes.refuses = model::ErrorKind::transient;
  EXPECT_EQ(tick(), Told{});
  make_scope();
  EXPECT_EQ(tick(), (Told{std::string("leaf ") + kScope + " applied"}));
}

TEST_F(LeavesTest, AScopeOfThatNameThatIsNotCollectedYetIsWaitedForOnce) {
  systemd = true;
  set_up(kUnit);
  seen.members.pop_back();
  scopes.refuses = model::ErrorKind::refused;
  EXPECT_EQ(tick(), Told{});
  now += 2.5;
  EXPECT_EQ(tick(), (Told{std::string("leaf ") + kUnit + " failed: systemd: no"}));
}

TEST_F(LeavesTest, WhomSystemdTookForTheExecutorGoesWhereHisParentIs) {
  systemd = true;
  set_up(kUnit);
  seen.members.pop_back();
  tree.make("shells");
  tree.write("shells", "cgroup.procs", "");
  proc.add_plain(2, "bash", "shells");
  tick();
  proc.add_plain(7, "sed", "shells", 2);
  make_scope();
  EXPECT_EQ(tick(), Told{});
  EXPECT_EQ(place(7), "shells");
}

TEST_F(LeavesTest, AUnitWhoseSystemdIsNotSeenIsLeft) {
  set_up(kUnit);
  found[kUnit].systemd_unit = "spark-worker.service";
  EXPECT_EQ(tick(), Told{});
  EXPECT_NE(problem().find("berth cannot see that systemd"), std::string::npos);
}

TEST_F(LeavesTest, WhatIsNoUnitOfSystemdsIsLeft) {
  systemd = true;
  set_up("spark/worker");
  EXPECT_EQ(tick(), Told{});
  EXPECT_NE(problem().find("in none of its units"), std::string::npos);
}

TEST_F(LeavesTest, AContainerIsItsRuntimes) {
  const std::string id = "machine.slice/libpod-" + std::string(64, 'a') + ".scope";
  set_up(id);
  EXPECT_EQ(tick(), Told{});
  EXPECT_NE(problem().find("container"), std::string::npos);
}

TEST_F(LeavesTest, WhoseFamilyCannotFollowGoesBack) {
  systemd = true;
  set_up(kUnit);
  seen.members.pop_back();
  tick();
  make_scope();
  unmovable = {8};
  EXPECT_EQ(tick(), (Told{std::string("leaf ") + kUnit + " failed: not that one"}));
  EXPECT_EQ(place(7), kUnit);
}

TEST_F(LeavesTest, AnExecutorOfAUnitsFormerRunIsEnded) {
  systemd = true;
  set_up(kUnit);
  seen.members.pop_back();
  tick();
  make_scope();
  tick();
  find_leaf(kScope);
  EXPECT_EQ(tick(), Told{});
  EXPECT_TRUE(scopes.stopped.empty());
  std::filesystem::rename(tree.root() / kUnit, tree.root() / "system.slice/old");
  tree.make(kUnit);
  tree.write(kUnit, "cgroup.procs", "44\n");
  found[kUnit].cgroup = *cgroup::Cgroup::open(tree.root(), kUnit);
  EXPECT_EQ(tick(), (Told{std::string("leaf ") + kScope + " applied"}));
  EXPECT_EQ(scopes.stopped, Told{"spark-worker.service.berth-executor-7-70.scope"});
  EXPECT_EQ(tick(), Told{}) << "it may take its time";
  EXPECT_EQ(scopes.stopped.size(), 1U);
}

TEST_F(LeavesTest, AScopeThatComesLateGoesBackToo) {
  systemd = true;
  set_up(kUnit);
  tick();
  EXPECT_TRUE(leaves->put_back().empty());
  EXPECT_TRUE(leaves->is_under_way()) << "systemd may make it yet";
  EXPECT_TRUE(leaves->put_back().empty());
  make_scope();
  EXPECT_EQ(leaves->put_back().size(), 1U);
  EXPECT_EQ(place(7), kUnit);
  EXPECT_FALSE(leaves->is_under_way());
}

TEST_F(LeavesTest, AScopeThatIsBeingMadeGoesBackToo) {
  systemd = true;
  set_up(kUnit);
  tick();
  make_scope();
  const auto done = leaves->put_back();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(place(7), kUnit);
  EXPECT_EQ(tick(), Told{}) << "and is forgotten";
}

}  // namespace
}  // namespace berth::daemon
