// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/daemon/enforce/leaves_fixture.h"

#include <cerrno>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

TEST_F(LeavesTest, EachExecutorGetsADirectoryWithWhomItHasStarted) {
  set_up("spark/worker");
  EXPECT_EQ(tick(), Told{"leaf spark/worker.berth-executor-7-70 applied"}) << "one a tick";
  EXPECT_EQ(moves, (Told{std::string("7 ") + kFirst, std::string("8 ") + kFirst})) << "itself first";
  EXPECT_TRUE(leaves->take_moved());
  EXPECT_FALSE(leaves->take_moved());
  EXPECT_EQ(tick(), Told{"leaf spark/worker.berth-executor-9-90 applied"});
  EXPECT_EQ(tick(), Told{});
  EXPECT_EQ(pids(worker), "4\n");
  EXPECT_EQ(pids(kFirst), "7\n8\n");
  EXPECT_EQ(pids(kSecond), "9\n");
  EXPECT_EQ(problem(), "");
}

TEST_F(LeavesTest, WhomItStartsMeanwhileFollows) {
  set_up("spark/worker");
  on_move = [&](pid_t pid) {
    if (pid != 8) return;
    proc.add_plain(6, "python3", worker, 8);
    enter(worker, 6);
  };
  tick();
  EXPECT_EQ(pids(kFirst), "7\n8\n6\n");
}

TEST_F(LeavesTest, AnotherWhoHasGotTheNumberGoesWhereHisParentIs) {
  set_up("spark/worker");
  tree.make("shells");
  tree.write("shells", "cgroup.procs", "");
  proc.add_plain(2, "bash", "shells");
  on_move = [&](pid_t pid) {
    // Between the look and the write the 8 ended, and another process got its number.
    if (pid != 8 || place(8) != kFirst) return;
    proc.write(8, "stat", "8 (x) S 2 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21\n");
  };
  tick();
  EXPECT_EQ(pids(kFirst), "7\n");
  EXPECT_EQ(pids(worker), "4\n9\n");
  EXPECT_EQ(pids("shells"), "8\n");
}

TEST_F(LeavesTest, NobodyIsDividedWhoIsNotToBeEvicted) {
  set_up("spark/worker");
  auto& workload = whole();
  workload.fixed.life = true;
  EXPECT_EQ(tick(), Told{});
  workload.fixed.life = false;
  workload.workload_class = model::WorkloadClass::latency_sensitive;
  EXPECT_EQ(tick(), Told{});
  workload.workload_class = model::WorkloadClass::best_effort;
  workload.spared.reset();
  EXPECT_EQ(tick(), Told{}) << "it is alone";
  EXPECT_TRUE(moves.empty());
  workload.spared = "its cgroup is shared";
  EXPECT_EQ(tick().size(), 1U);
}

TEST_F(LeavesTest, ALeafIsGivenUpOnceItsOriginIsLatencySensitive) {
  set_up("spark/worker");
  tick();
  find_leaf(kFirst);
  whole().workload_class = model::WorkloadClass::latency_sensitive;
  model::find_workload(snapshot, kFirst)->evicted_at = 990;
  EXPECT_EQ(tick(), Told{}) << "it is ending";
  model::find_workload(snapshot, kFirst)->evicted_at.reset();
  EXPECT_EQ(tick(), Told{"restore spark/worker.berth-executor-7-70 restored"});
  EXPECT_EQ(pids(worker), "4\n9\n7\n8\n");
  EXPECT_FALSE(exists(kFirst));
}

TEST_F(LeavesTest, WhatCannotBeGivenUpIsSaidOnceAndHoldsUpNobody) {
  set_up("spark/worker");
  tick();
  tick();
  find_leaf(kFirst);
  find_leaf(kSecond);
  whole().workload_class = model::WorkloadClass::latency_sensitive;
  unmovable = {7, 8};
  (void)leaves->take_moved();
  EXPECT_EQ(tick(), (Told{"restore spark/worker.berth-executor-7-70 left: not that one",
                          "restore spark/worker.berth-executor-9-90 restored"}));
  found.erase(kSecond);
  EXPECT_TRUE(leaves->take_moved());
  EXPECT_EQ(tick(), Told{});
  now += 61;
  EXPECT_EQ(tick(), Told{}) << "the same again";
  EXPECT_FALSE(leaves->take_moved());
  unmovable.clear();
  now += 61;
  EXPECT_EQ(tick(), Told{"restore spark/worker.berth-executor-7-70 restored"});
}

TEST_F(LeavesTest, WhoseRuleIsGoneGoesBack) {
  set_up("spark/worker");
  tick();
  find_leaf(kFirst);
  tick();
  found.clear();
  EXPECT_EQ(tick(), Told{"restore spark/worker.berth-executor-7-70 restored"});
  EXPECT_EQ(place(7), worker);
  EXPECT_FALSE(exists(kFirst));
}

TEST_F(LeavesTest, WhoIsDecommissionedStays) {
  set_up("spark/worker");
  tick();
  find_leaf(kFirst);
  const auto path = (tree.root() / kFirst).string();
  ASSERT_EQ(setxattr(path.c_str(), cgroup::kDecommissionedMark, "1", 1, 0), 0);
  const auto done = leaves->put_back();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].problem, "its executor was asked to end, and stays until then");
  EXPECT_EQ(pids(kFirst), "7\n8\n");
}

TEST_F(LeavesTest, TheLastOneAndTheMainProcessStay) {
  set_up("spark/worker");
  tree.write(worker, "cgroup.procs", "7\n8\n");
  EXPECT_EQ(tick().front(), "leaf spark/worker failed: no other process is left in its cgroup");
  systemd = true;
  set_up(kUnit);
  scopes.is.main_pid = 8;
  EXPECT_EQ(tick().front(),
            std::string("leaf ") + kUnit + " failed: the main process of its unit would move with it");
  EXPECT_TRUE(scopes.asked.empty());
}

TEST_F(LeavesTest, NoMoreThanAWorkerHas) {
  set_up("spark/worker");
  for (std::size_t i = 0; i < Leaves::kMost; ++i) {
    const auto leaf = "spark/worker.berth-executor-" + std::to_string(100 + i) + "-1";
    tree.make(leaf);
    tree.write(leaf, "cgroup.procs", "");
    find_leaf(leaf);
  }
  EXPECT_EQ(tick(), Told{});
  EXPECT_NE(problem().find("32 executors of this workload have one already"), std::string::npos);
  found.erase("spark/worker.berth-executor-100-1");
  EXPECT_EQ(tick().size(), 1U);
}

TEST_F(LeavesTest, AllTogetherWeighWhatOneDoes) {
  set_up("spark/worker");
  auto with_weights = hands();
  with_weights.make = [this, plain = hands().make](const std::filesystem::path& directory) {
    auto made = plain(directory);
    tree.write(std::filesystem::relative(directory, tree.root()).string(), "cpu.weight", "");
    return made;
  };
  leaves.emplace(Leaves::Options{.cgroup_root = tree.root(),
                                 .proc_root = proc.root(),
                                 .scopes = [] { return nullptr; },
                                 .systemd_runs = false,
                                 .monotonic = [this] { return now; },
                                 .hands = with_weights});
  tick();
  tick();
  EXPECT_EQ(std::stoi(tree.read(kFirst, "cpu.weight")), 50);
  EXPECT_EQ(std::stoi(tree.read(kSecond, "cpu.weight")), 50);
  EXPECT_FALSE(exists(std::string(kFirst) + "/io.weight")) << "nobody gives weights out";
}

TEST_F(LeavesTest, WhoLivesDeeperIsLeftThere) {
  set_up("spark/worker");
  seen.members[1].cgroup = "spark/worker/inner";
  seen.members[2].cgroup = "spark/worker/inner";
  EXPECT_EQ(tick(), Told{});
  EXPECT_EQ(problem(),
            "executor 0 of app-1 (pid 7) gets no cgroup of its own: it runs in a deeper cgroup, "
            "\"spark/worker/inner\"");
}

TEST_F(LeavesTest, ALimitThatItWouldLeaveBehindKeepsItAndIsSaidOnce) {
  set_up("spark/worker");
  tree.write(worker, "memory.max", "1073741824\n");
  EXPECT_EQ(tick(),
            Told{"leaf spark/worker failed: the executor would escape a limit: memory.max is 1073741824"});
  EXPECT_NE(problem().find("gets no cgroup of its own: the executor would escape a limit"),
            std::string::npos);
  EXPECT_EQ(tick(), Told{}) << "nor has the other one any";
  EXPECT_NE(problem(), "") << "as long as it is so";
  now += 61;
  EXPECT_EQ(tick(), Told{}) << "the same again";
  tree.write(worker, "memory.max", "max\n");
  now += 61;
  EXPECT_EQ(tick(), Told{"leaf spark/worker.berth-executor-7-70 applied"});
  EXPECT_TRUE(exists(kFirst));
}

TEST_F(LeavesTest, ALimitThatIsSetLaterBringsAllBackUntilItIsGone) {
  set_up("spark/worker");
  tick();
  find_leaf(kFirst);
  tick();
  find_leaf(kSecond);
  now += 11;
  EXPECT_EQ(tick(), Told{});
  tree.write(worker, "memory.max", "1073741824\n");
  EXPECT_EQ(tick(), Told{}) << "it looks every 10 s";
  now += 11;
  EXPECT_EQ(tick(), Told{"restore spark/worker.berth-executor-7-70 restored"});
  found.erase(kFirst);
  EXPECT_EQ(tick(), Told{"restore spark/worker.berth-executor-9-90 restored"}) << "one a tick";
  found.erase(kSecond);
  EXPECT_EQ(place(7), worker);
  EXPECT_EQ(place(9), worker);
  EXPECT_EQ(tick(), Told{}) << "they stay there";
  EXPECT_NE(problem().find("the executor would escape a limit: memory.max is 1073741824"), std::string::npos);
  tree.write(worker, "memory.max", "max\n");
  now += 61;
  EXPECT_EQ(tick(), Told{"leaf spark/worker.berth-executor-7-70 applied"});
}

TEST_F(LeavesTest, WhatBerthHoldsKeepsNobody) {
  set_up("spark/worker");
  tree.write(worker, "cpu.max", "50000 100000\n");
  EXPECT_EQ(tick().front(),
            "leaf spark/worker failed: the executor would escape a limit: cpu.max is 50000 100000");
  holdings.of(model::Attribute::cpu_quota)[worker] =
      make_held(target.cgroup->id(), cgroup::cpu_max(0.5), cgroup::CpuMax(), 900);
  now += 61;
  EXPECT_EQ(tick(), Told{"leaf spark/worker.berth-executor-7-70 applied"});
}

TEST_F(LeavesTest, WhoCannotBeMovedIsLeftWithNothingBehind) {
  set_up("spark/worker");
  unmovable = {7};
  EXPECT_EQ(tick(), Told{"leaf spark/worker failed: not that one"});
  EXPECT_FALSE(exists(kFirst));
  unmovable = {8};
  now += 61;
  tick();
  EXPECT_FALSE(exists(kFirst)) << "it has been moved back";
  EXPECT_EQ(place(7), worker);
}

TEST_F(LeavesTest, OneWhoseExecutorHasEndedIsRemoved) {
  set_up("spark/worker");
  tick();
  find_leaf(kFirst);
  tick();
  tree.write(kFirst, "cgroup.procs", "");
  found.erase(kFirst);
  seen.members.erase(seen.members.begin() + 1);
  tick();
  EXPECT_FALSE(exists(kFirst));
  EXPECT_TRUE(exists(kSecond)) << "which is not found yet";
}

TEST_F(LeavesTest, AllGoBack) {
  set_up("spark/worker");
  tick();
  tick();
  const auto done = leaves->put_back();
  EXPECT_EQ(done.size(), 2U);
  EXPECT_EQ(pids(worker), "4\n7\n8\n9\n");
  EXPECT_FALSE(exists(kFirst));
  EXPECT_FALSE(exists(kSecond));
}

}  // namespace
}  // namespace berth::daemon
