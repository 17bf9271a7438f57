// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforce/leaves.h"

#include "cgroup/path.h"
#include "cgroup/recognise.h"
#include "spark/process.h"
#include "tests/unit/cgroup/fake_tree.h"
#include "tests/unit/spark/fake_proc.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/xattr.h>

namespace berth::daemon {
namespace {

using spark::ProcessKind;
using Told = std::vector<std::string>;

// systemd as far as scopes go: makes them when the test says so.
class FakeScopes final : public cgroup::ScopeMaker {
 public:
  model::Result<void> start_scope(const cgroup::Scope& scope) override {
    ++calls;
    if (refuses) return model::fail(*refuses, "systemd: no");
    asked.push_back(scope);
    return {};
  }
  model::Result<cgroup::UnitTraits> traits(const std::string& /*unit*/,
                                           const std::set<cgroup::Attribute>& /*held*/) override {
    ++calls;
    if (silent) return model::fail(model::ErrorKind::transient, "systemd: no answer");
    return is;
  }
  model::Result<void> stop_unit(const std::string& unit) override {
    ++calls;
    stopped.push_back(unit);
    if (refuses) return model::fail(*refuses, "systemd: no");
    return {};
  }

  std::optional<model::ErrorKind> refuses;
  bool silent = false;
  int calls = 0;
  std::vector<cgroup::Scope> asked;
  cgroup::UnitTraits is;
  std::vector<std::string> stopped;
};

class LeavesTest : public testing::Test {
 protected:
  // A Worker (4) and two executors (7 and 9) in one cgroup, of which 7 has started a 8.
  void set_up(const std::string& id) {
    worker = id;
    tree.make(std::string(cgroup::parent_path(id)));
    tree.make(id);
    tree.write(id, "cgroup.procs", "");
    add(4, spark::test::worker(), 40, 1);
    add(7, spark::test::standalone_executor("app-1", "0"), 70, 4);
    add(9, spark::test::standalone_executor("app-2", "0"), 90, 4);
    proc.add_plain(8, "python3", id, 7);
    enter(id, 8);
    target.cgroup = *cgroup::Cgroup::open(tree.root(), id);
    target.identity.id = id;
    target.systemd_unit = systemd ? cgroup::systemd_unit(id) : "";
    target.kind = cgroup::kind_of(id);
    found[id] = target;
    model::Workload workload;
    workload.id = id;
    workload.spared = "its cgroup is shared";
    snapshot.workloads = {workload};
    leaves.emplace(
        Leaves::Options{.cgroup_root = tree.root(),
                        .proc_root = proc.root(),
                        .scopes = [this]() -> cgroup::ScopeMaker* { return no_bus ? nullptr : &scopes; },
                        .systemd_runs = systemd,
                        .monotonic = [this] { return now; },
                        .hands = hands()});
  }
  void add(int pid, const std::vector<std::string>& arguments, std::uint64_t started, int parent) {
    proc.add(pid, arguments, worker, started, parent);
    enter(worker, pid);
    const auto process = *spark::find_process(proc.root(), pid);
    spark::Member member{.pid = pid,
                         .name = process.what.name,
                         .cgroup = worker,
                         .kind = process.what.kind,
                         .identity = {},
                         .started = started};
    if (member.kind == ProcessKind::executor)
      member.identity = {process.what.app, model::SparkRole::executor, process.what.executor};
    seen.members.push_back(member);
  }
  void enter(const std::string& path, int pid) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(tree.root())) {
      if (!std::filesystem::exists(entry.path() / "cgroup.procs")) continue;
      const auto other = std::filesystem::relative(entry.path(), tree.root()).string();
      auto pids = tree.read(other, "cgroup.procs");
      const auto line = std::to_string(pid) + "\n";
      if (const auto at = ("\n" + pids).find("\n" + line); at != pids.npos)
        tree.write(other, "cgroup.procs", pids.erase(at, line.size()));
    }
    tree.write(path, "cgroup.procs", tree.read(path, "cgroup.procs") + std::to_string(pid) + "\n");
    proc.write(pid, "cgroup", "0::/" + path + "\n");
  }
  cgroup::LeafHands hands() {
    return {.look = cgroup::kernel_hands(proc.root()).look,
            .move = [this](const cgroup::Cgroup& to, pid_t pid) -> model::Result<void> {
              if (unmovable.contains(pid)) return model::fail(model::ErrorKind::permission, "not that one");
              moves.push_back(std::to_string(pid) + " " + to.path());
              enter(to.path(), pid);
              if (on_move) on_move(pid);
              return {};
            },
            .make = [this](const std::filesystem::path& directory) -> model::Result<void> {
              const auto path = std::filesystem::relative(directory, tree.root()).string();
              tree.make(path);
              tree.write(path, "cgroup.procs", "");
              return {};
            },
            .remove = [this](const std::filesystem::path& directory) -> model::Result<void> {
              const auto path = std::filesystem::relative(directory, tree.root()).string();
              if (!pids(path).empty()) return model::fail(model::Error::from_errno(EBUSY, "removing"));
              std::filesystem::remove_all(directory);
              return {};
            }};
  }
  Told tick() {
    Told told;
    for (const LogEntry& entry :
         leaves->tick({.seen = seen, .found = found, .snapshot = snapshot, .holdings = holdings}, 1000)) {
      told.push_back(entry.kind + " " + entry.workload + " " + entry.result +
                     (entry.error ? ": " + *entry.error : ""));
    }
    return told;
  }
  // As discovery does.
  void find_leaf(const std::string& path) {
    cgroup::FoundWorkload leaf = target;
    leaf.cgroup = *cgroup::Cgroup::open(tree.root(), path);
    leaf.identity.id = path;
    leaf.leaf_of = worker;
    found[path] = leaf;
    model::Workload workload;
    workload.id = path;
    snapshot.workloads.push_back(workload);
    std::ranges::sort(snapshot.workloads, {}, &model::Workload::id);
  }
  std::string problem() const {
    const auto told = leaves->problems().find(worker);
    return told == leaves->problems().end() ? "" : told->second;
  }
  std::string place(int pid) const {
    const auto spot = cgroup::kernel_hands(proc.root()).look(pid);
    return spot ? spot->path : "";
  }
  // systemd has made the scope.
  void make_scope() {
    tree.make(kScope);
    tree.write(kScope, "cgroup.procs", "");
    enter(kScope, 7);
  }
  model::Workload& whole() { return *daemon::find_workload(snapshot, worker); }
  std::string pids(const std::string& path) const { return tree.read(path, "cgroup.procs"); }
  bool exists(const std::string& path) const { return std::filesystem::exists(tree.root() / path); }

  static constexpr const char* kFirst = "spark/worker.berth-executor-7-70";
  static constexpr const char* kSecond = "spark/worker.berth-executor-9-90";
  static constexpr const char* kUnit = "system.slice/spark-worker.service";
  static constexpr const char* kScope = "system.slice/spark-worker.service.berth-executor-7-70.scope";

  bool systemd = false;
  bool no_bus = false;
  std::string worker;
  cgroup::test::FakeTree tree;
  spark::test::FakeProc proc;
  spark::Observation seen;
  cgroup::FoundWorkload target;
  std::map<std::string, cgroup::FoundWorkload> found;
  model::Snapshot snapshot;
  Holdings holdings;
  FakeScopes scopes;
  double now = 5000;
  std::set<pid_t> unmovable;
  std::vector<std::string> moves;
  std::function<void(pid_t)> on_move;
  std::optional<Leaves> leaves;
};

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
  daemon::find_workload(snapshot, kFirst)->evicted_at = 990;
  EXPECT_EQ(tick(), Told{}) << "it is ending";
  daemon::find_workload(snapshot, kFirst)->evicted_at.reset();
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

TEST_F(LeavesTest, WhatBerthHoldsKeepsNobody) {
  set_up("spark/worker");
  tree.write(worker, "cpu.max", "50000 100000\n");
  EXPECT_EQ(tick().front(),
            "leaf spark/worker failed: the executor would escape a limit: cpu.max is 50000 100000");
  holdings.cpu_quota[worker] =
      make_held(cgroup::Attribute::cpu_quota, target.cgroup->id(), "50000 100000", "max 100000", 900);
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
