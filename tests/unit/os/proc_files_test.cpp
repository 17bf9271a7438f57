// SPDX-License-Identifier: Apache-2.0
#include "os/proc_files.h"

#include "tests/unit/cgroup/fake_tree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::os {
namespace {

class ProcessCgroup : public testing::Test {
 protected:
  void process(pid_t pid, const std::string& cgroup, const std::string& status) const {
    tree.write_proc(std::to_string(pid) + "/cgroup", cgroup);
    tree.write_proc(std::to_string(pid) + "/status", status);
  }
  std::optional<std::string> of(pid_t pid, uid_t uid) const {
    return cgroup_of_process(tree.proc(), pid, uid);
  }
  cgroup::test::FakeTree tree;
};

TEST_F(ProcessCgroup, IsItsPathInVersionTwo) {
  process(42, "5:cpuset:/x\n1:name=systemd:/y\n0::/system.slice/job.service/inner\n",
          "Name:\tjob\nUid:\t1000\t1000\t1000\t1000\n");
  EXPECT_EQ(of(42, 1000), "system.slice/job.service/inner");
}

TEST_F(ProcessCgroup, IsOnlyToldOfThatUsersProcess) {
  process(42, "0::/system.slice/job.service\n", "Name:\tjob\nUid:\t0\t1000\t1000\t1000\n");
  EXPECT_EQ(of(42, 1000), "system.slice/job.service");
  EXPECT_EQ(of(42, 0), std::nullopt);
  EXPECT_EQ(of(43, 1000), std::nullopt);
}

TEST_F(ProcessCgroup, IsNotGuessed) {
  process(42, "1:name=systemd:/y\n", "Uid:\t0\t0\t0\t0\n");
  process(43, "0::/\n", "Uid:\t0\t0\t0\t0\n");
  process(44, "0::/x\n", "garbage\n");
  EXPECT_EQ(of(42, 0), std::nullopt);
  EXPECT_EQ(of(43, 0), "");
  EXPECT_EQ(of(44, 0), std::nullopt);
}

TEST_F(ProcessCgroup, KnowsThisProcess) {
  if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) != 0) GTEST_SKIP() << "no cgroup v2 here";
  EXPECT_TRUE(cgroup_of_process("/proc", getpid(), geteuid()));
}

TEST(ProcFiles, AFieldThatTheLimitCutsIsNotBelieved) {
  const cgroup::test::FakeTree tree;
  const auto status = [&](std::size_t groups) {
    std::string text = "Name:\tjob\nUid:\t7\t8\t9\t10\nGroups:\t";
    while (text.size() < groups) text += "4294967294 ";
    return text + "\nNSpid:\t4242\t17\n";
  };
  tree.write_proc("1/status", status(1000));
  EXPECT_EQ(status_field(tree.proc() / "1", "NSpid"), "4242\t17");
  for (std::size_t size = 65'500; size < 65'540; ++size) {
    tree.write_proc("2/status", status(size));
    const auto read = status_field(tree.proc() / "2", "NSpid");
    EXPECT_TRUE(!read || *read == "4242\t17") << size << ": " << *read;
  }
  EXPECT_EQ(user_of(tree.proc() / "2"), 10U);
}

TEST(ProcFiles, ANameMayHoldAnything) {
  const cgroup::test::FakeTree tree;
  tree.write_proc("3/stat", "3 (a) b) (S 9 ) S 2 3 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 5 0 777 0 0\n");
  const auto stat = read_stat(tree.proc() / "3");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a) b) (S 9 ");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 2);
  EXPECT_EQ(stat->threads, 5);
  EXPECT_EQ(stat->started, 777U);
  tree.write_proc("4/stat", "4 (a) S 2 3");
  EXPECT_FALSE(read_stat(tree.proc() / "4"));
}

TEST(ProcFiles, AFileIsReadUpToALimit) {
  const cgroup::test::FakeTree tree;
  tree.write_proc("5/cmdline", std::string(10'000, 'x'));
  EXPECT_EQ(read_start(tree.proc() / "5" / "cmdline", 6000).size(), 6000U);
  EXPECT_EQ(read_start(tree.proc() / "5" / "cmdline", 60'000).size(), 10'000U);
  EXPECT_EQ(read_start(tree.proc() / "5" / "none", 10), "");
}

class HangingProcess : public testing::Test {
 protected:
  void thread(pid_t tid, char state, unsigned flags, const std::string& pending) const {
    const std::string directory = fmt::format("7/task/{}/", tid);
    tree.write_proc(
        directory + "stat",
        fmt::format("{} (berthd) {} 1 7 7 0 -1 {} 0 0 0 0 0 0 0 0 20 0 2 0 55", tid, state, flags));
    tree.write_proc(directory + "status", "Name:\tberthd\nSigPnd:\t" + pending + "\n");
  }
  bool hangs() const { return hangs_for_good(tree.proc() / "7"); }
  cgroup::test::FakeTree tree;
};

constexpr const char* kNothing = "0000000000000000";
constexpr const char* kKilled = "0000000000000100";

TEST_F(HangingProcess, NeverRunsAgainOnceEachThreadIsToEnd) {
  EXPECT_FALSE(hangs()) << "there is none";
  thread(7, 'D', 0x400000, kNothing);
  EXPECT_FALSE(hangs()) << "the call that it waits for may return";
  thread(7, 'D', 0x400000, kKilled);
  EXPECT_TRUE(hangs());
  thread(8, 'S', 0x400000, "0000000000004000");
  EXPECT_FALSE(hangs()) << "SIGTERM can be waited for";
  thread(8, 'D', 0x400004, kNothing);
  EXPECT_TRUE(hangs()) << "it hangs while it closes its files";
}

TEST_F(HangingProcess, MayHaveADeadLeader) {
  thread(7, 'Z', 0x40000c, kNothing);
  EXPECT_FALSE(hangs()) << "all of it is dead, so it holds nothing";
  thread(8, 'D', 0x400000, kKilled);
  EXPECT_TRUE(hangs());
  thread(9, 'R', 0x400000, kNothing);
  EXPECT_FALSE(hangs());
}

}  // namespace
}  // namespace berth::os
