// SPDX-License-Identifier: Apache-2.0
#include "cgroup/leaf.h"

#include "tests/unit/cgroup/fake_tree.h"
#include "values.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace berth::cgroup {
namespace {

class LeafTest : public testing::Test {
 protected:
  static constexpr const char* kOrigin = "spark/worker";
  static constexpr const char* kLeaf = "spark/worker.berth-executor-7-100";

  LeafTest() {
    tree.make("spark");
    make(kOrigin, "4\n5\n");
  }
  void make(const std::string& path, const std::string& pids) const {
    tree.make(path, !pids.empty());
    tree.write(path, "cgroup.procs", pids);
  }
  std::shared_ptr<Cgroup> open(const std::string& path) const {
    auto opened = Cgroup::open(tree.root(), path);
    EXPECT_TRUE(opened);
    return *opened;
  }
  std::optional<std::string> bounds(const std::map<Attribute, Value>& originals = {}, bool pids = true) {
    return bounds_of(*open(kOrigin), originals, tree.root(), pids);
  }
  // Moves by the lists, and removes with all that is in a directory, as the kernel does with control files.
  LeafHands hands() {
    return {
        .look = [this](pid_t pid) -> std::optional<Spot> {
          if (const auto set = spots.find(pid); set != spots.end()) return set->second;
          for (const char* path : {kOrigin, kLeaf, "spark/worker.berth-executor-7-100.scope", "elsewhere"}) {
            const auto line = "\n" + std::to_string(pid) + "\n";
            if (("\n" + tree.read(path, "cgroup.procs")).find(line) != std::string::npos)
              return Spot{.path = path, .started = 100, .parent = 1};
          }
          return std::nullopt;
        },
        .move = [this](const Cgroup& to, pid_t pid) -> model::Result<void> {
          if (pid == unmovable) return model::fail(model::ErrorKind::permission, "not that one");
          for (const char* path : {kOrigin, kLeaf, "spark/worker.berth-executor-7-100.scope", "elsewhere"}) {
            auto pids = tree.read(path, "cgroup.procs");
            const auto line = std::to_string(pid) + "\n";
            if (const auto at = pids.find(line); at != pids.npos)
              tree.write(path, "cgroup.procs", pids.erase(at, line.size()));
          }
          tree.write(to.path(), "cgroup.procs",
                     tree.read(to.path(), "cgroup.procs") + std::to_string(pid) + "\n");
          if (on_move) on_move(to.path(), pid);
          return {};
        },
        .make = [](const std::filesystem::path&) -> model::Result<void> { return {}; },
        .remove = [](const std::filesystem::path& directory) -> model::Result<void> {
          std::filesystem::remove_all(directory);
          return {};
        }};
  }
  bool exists(const std::string& path) const { return std::filesystem::exists(tree.root() / path); }
  std::string pids(const std::string& path) const { return tree.read(path, "cgroup.procs"); }

  test::FakeTree tree;
  pid_t unmovable = -1;
  std::map<pid_t, Spot> spots;  // where that is not what cgroup.procs say
  std::function<void(const std::string& to, pid_t)> on_move;
};

TEST_F(LeafTest, APathSaysOfWhomItIs) {
  const Leaf leaf{.origin = "spark/worker", .pid = 7, .started = 100};
  EXPECT_EQ(leaf_path(leaf, false), kLeaf);
  EXPECT_EQ(leaf_at(kLeaf), leaf);
  EXPECT_EQ(leaf_at(leaf_path(leaf, true)), leaf);
  EXPECT_TRUE(is_scope(leaf_path(leaf, true)));
  const Leaf of_unit{.origin = R"(a@b.slice/w@1\x2d\x40.service)", .pid = 8, .started = 1};
  EXPECT_EQ(leaf_path(of_unit, true), R"(a@b.slice/w\x401\x5cx2d\x5cx40.service.berth-executor-8-1.scope)")
      << "no scope's name may have an @";
  EXPECT_EQ(leaf_at(leaf_path(of_unit, true)), of_unit);
  for (const char* other :
       {"w.berth-executor-7", "w.berth-executor-7-", "w.berth-executor-x-1", "w.berth-executor-7-100.service",
        "w.berth-executor-7-100-1", "w.berth-executor-0-1", "w.berth-executor--7-1", "a/.berth-executor-7-1",
        ".berth-executor-7-1", "w.berth-executor-7-1/deeper", "berth-executor-7-1", ""})
    EXPECT_EQ(leaf_at(other), std::nullopt) << other;
}

TEST_F(LeafTest, WhatIsUnsetBindsNobody) {
  EXPECT_EQ(bounds(), std::nullopt) << "no controllers at all";
  for (const auto& [file, value] :
       std::vector<std::pair<const char*, const char*>>{{"cgroup.type", "domain"},
                                                        {"cpu.max", "max 100000"},
                                                        {"cpu.weight", "100"},
                                                        {"cpuset.cpus", ""},
                                                        {"cpuset.mems", ""},
                                                        {"memory.high", "max"},
                                                        {"memory.max", "max"},
                                                        {"memory.min", "0"},
                                                        {"io.max", ""},
                                                        {"io.weight", "default 100"},
                                                        {"pids.max", "max"}})
    tree.write(kOrigin, file, std::string(value) + "\n");
  EXPECT_EQ(bounds(), std::nullopt);
}

TEST_F(LeafTest, EachLimitAndEachPrecedenceBinds) {
  for (const auto& [file, value, unset] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"cpu.max", "50000 100000", "max 100000"},
           {"memory.max", "1073741824", "max"},
           {"memory.high", "1073741824", "max"},
           {"memory.low", "4096", "0"},
           {"memory.swap.max", "0", "max"},
           {"io.max", "8:0 rbps=1", ""},
           {"cpu.weight", "20", "100"},
           {"cpu.idle", "1", "0"},
           {"cpuset.mems", "0", ""},
           {"cgroup.type", "threaded", "domain"},
           {"cgroup.freeze", "1", "0"},
           {"cgroup.max.depth", "2", "max"},
           {"cpu.max.burst", "1000", "0"},
           {"io.prio.class", "idle", "no-change"},
           {"memory.zswap.writeback", "0", "1"},
           {"cpu.uclamp.min", "20.00", "0.00"},
           {"cpuset.cpus.partition", "root", "member"},
           {"memory.oom.group", "1", "0"},
           {"io.latency", "8:0 target=1000", ""},
           {"hugetlb.2MB.max", "0", "max"},
           {"misc.max", "sev 1", "sev max"},
           {"rdma.max", "mlx5_0 hca_handle=1 hca_object=max", "mlx5_0 hca_handle=max hca_object=max"},
           {"pids.max", "100", "max"}}) {
    tree.write(kOrigin, file, value + "\n");
    EXPECT_EQ(bounds(), file + " is " + value);
    tree.write(kOrigin, file, unset + "\n");
    EXPECT_EQ(bounds(), std::nullopt) << file;
  }
  tree.write(kOrigin, "pids.max", "100\n");
  EXPECT_EQ(bounds({}, false), std::nullopt) << "systemd gives every unit one";
}

TEST_F(LeafTest, VCpusBindWhereTheParentHasMore) {
  tree.write("spark", "cpuset.cpus.effective", "0-3\n");
  tree.write(kOrigin, "cpuset.cpus", "0-1\n");
  EXPECT_EQ(bounds(), "cpuset.cpus is 0-1");
  tree.write(kOrigin, "cpuset.cpus", "0-7\n");
  EXPECT_EQ(bounds(), std::nullopt);
}

TEST_F(LeafTest, WhatBerthHoldsCountsAsItWas) {
  tree.write(kOrigin, "cpu.max", "50000 100000\n");
  EXPECT_EQ(bounds({{Attribute::cpu_quota, quota("max 100000")}}), std::nullopt);
  EXPECT_EQ(bounds({{Attribute::cpu_quota, quota("80000 100000")}}), "cpu.max is 80000 100000");
}

TEST_F(LeafTest, ProcessesGoBackAndTheDirectoryGoes) {
  make(kLeaf, "7\n8\n");
  const auto done = put_back_leaves(tree.root(), hands());
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].leaf, kLeaf);
  EXPECT_EQ(done[0].origin, kOrigin);
  EXPECT_EQ(done[0].processes, 2U);
  EXPECT_EQ(done[0].problem, std::nullopt);
  EXPECT_EQ(pids(kOrigin), "4\n5\n7\n8\n");
  EXPECT_FALSE(exists(kLeaf));
  EXPECT_TRUE(put_back_leaves(tree.root(), hands()).empty());
}

TEST_F(LeafTest, WhoHasTheExecutorsNumberAndIsAnotherGoesWhereHisParentIs) {
  make(kLeaf, "7\n8\n");
  make("elsewhere", "3\n");
  spots[7] = {.path = kLeaf, .started = 4711, .parent = 3};
  const auto plain = hands();
  auto moving = plain;
  moving.move = [&](const Cgroup& to, pid_t pid) {
    spots.erase(pid);
    return plain.move(to, pid);
  };
  EXPECT_EQ(put_back_leaf(tree.root(), kLeaf, moving)->processes, 1U);
  EXPECT_EQ(pids(kOrigin), "4\n5\n8\n");
  EXPECT_EQ(pids("elsewhere"), "3\n7\n");
}

TEST_F(LeafTest, WhoCouldBeMovedInTheEndIsNoProblem) {
  make(kLeaf, "7\n8\n");
  unmovable = 7;
  on_move = [&](const std::string&, pid_t) { unmovable = -1; };
  const auto done = put_back_leaf(tree.root(), kLeaf, hands());
  EXPECT_EQ(done->problem, std::nullopt);
  EXPECT_EQ(done->processes, 2U);
  EXPECT_FALSE(exists(kLeaf));
}

TEST_F(LeafTest, WhoWasToldToEndEndsThere) {
  make(kLeaf, "7\n");
  ASSERT_EQ(setxattr((tree.root() / kLeaf).c_str(), kDecommissionedMark, "1", 1, 0), 0);
  EXPECT_NE(put_back_leaf(tree.root(), kLeaf, hands())->problem, std::nullopt);
  EXPECT_EQ(pids(kLeaf), "7\n");
  tree.write(kLeaf, "cgroup.procs", "");
  EXPECT_EQ(put_back_leaf(tree.root(), kLeaf, hands())->problem, std::nullopt);
  EXPECT_FALSE(exists(kLeaf));
}

TEST_F(LeafTest, WhoGotTheNumberMeanwhileGoesWhereHisParentIs) {
  make(kLeaf, "7\n8\n");
  make("elsewhere", "3\n");
  on_move = [&](const std::string& to, pid_t pid) {
    if (pid == 8) spots[8] = {.path = to, .started = 4711, .parent = 3};
  };
  EXPECT_EQ(put_back_leaf(tree.root(), kLeaf, hands())->processes, 1U);
  EXPECT_EQ(pids(kOrigin), "4\n5\n7\n");
  EXPECT_EQ(pids("elsewhere"), "3\n8\n");
}

TEST_F(LeafTest, WhoIsListedAndLivesElsewhereByNowStaysThere) {
  make(kLeaf, "7\n8\n");
  spots[8] = {.path = "elsewhere", .started = 100, .parent = 1};
  put_back_leaf(tree.root(), kLeaf, hands());
  EXPECT_EQ(pids(kOrigin), "4\n5\n7\n");
}

TEST_F(LeafTest, AScopeIsSystemdsToRemove) {
  const std::string scope = std::string(kLeaf) + ".scope";
  make(scope, "7\n");
  const auto done = put_back_leaves(tree.root(), hands());
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].problem, std::nullopt);
  EXPECT_EQ(pids(kOrigin), "4\n5\n7\n");
  EXPECT_TRUE(exists(scope));
  // Nor does any process go where systemd is about to clean up.
  tree.write(kOrigin, "cgroup.procs", "");
  tree.write(kOrigin, "cgroup.events", "populated 0\n");
  tree.write(scope, "cgroup.procs", "7\n");
  const auto left = put_back_leaves(tree.root(), hands());
  ASSERT_EQ(left.size(), 1U);
  EXPECT_NE(left[0].problem->find("is gone"), std::string::npos);
  EXPECT_EQ(pids(scope), "7\n");
}

TEST_F(LeafTest, WhoseOriginIsGoneStaysUntilItIsEmpty) {
  make(kLeaf, "7\n");
  tree.remove(kOrigin);
  const auto left = put_back_leaves(tree.root(), hands());
  ASSERT_EQ(left.size(), 1U);
  EXPECT_NE(left[0].problem, std::nullopt);
  EXPECT_EQ(pids(kLeaf), "7\n");
  tree.write(kLeaf, "cgroup.procs", "");
  EXPECT_EQ(put_back_leaves(tree.root(), hands())[0].problem, std::nullopt);
  EXPECT_FALSE(exists(kLeaf));
}

TEST_F(LeafTest, WhoCannotBeMovedIsTold) {
  make(kLeaf, "7\n8\n");
  unmovable = 8;
  const auto done = put_back_leaves(tree.root(), hands());
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].processes, 1U);
  EXPECT_EQ(done[0].problem, "not that one");
  EXPECT_TRUE(exists(kLeaf));
}

TEST_F(LeafTest, NobodysNameMovesAnyoneButRoots) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  make(kLeaf, "7\n");
  EXPECT_TRUE(is_trusted_ground(tree.root(), kLeaf));
  const auto leaf = (tree.root() / kLeaf).string();
  ASSERT_EQ(chown(leaf.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(is_trusted_ground(tree.root(), kLeaf));
  EXPECT_TRUE(put_back_leaves(tree.root(), hands()).empty());
  ASSERT_EQ(chown(leaf.c_str(), 0, 0), 0);
  ASSERT_EQ(chmod((tree.root() / "spark").c_str(), 0777), 0);
  EXPECT_FALSE(is_trusted_ground(tree.root(), kLeaf));
  EXPECT_TRUE(put_back_leaves(tree.root(), hands()).empty());
  EXPECT_FALSE(put_back_leaf(tree.root(), kLeaf, hands()).has_value());
  EXPECT_EQ(pids(kLeaf), "7\n");
}

TEST_F(LeafTest, TheKernelsHandsMakeAndRemove) {
  const LeafHands kernel = kernel_hands("/proc");
  const auto self = kernel.look(getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->parent, getppid());
  EXPECT_GT(self->started, 0U);
  const auto directory = tree.root() / "spark" / "berth-executor-9-1";
  const mode_t before = umask(0077);
  const auto made = kernel.make(directory);
  umask(before);
  ASSERT_TRUE(made);
  struct stat status {};
  ASSERT_EQ(stat(directory.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0755U) << "as other cgroups";
  EXPECT_TRUE(kernel.make(directory)) << "it is there";
  EXPECT_TRUE(kernel.remove(directory));
  EXPECT_TRUE(kernel.remove(directory)) << "it is gone";
  EXPECT_FALSE(kernel.make(tree.root() / "nowhere" / "x"));
}

}  // namespace
}  // namespace berth::cgroup
