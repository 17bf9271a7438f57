// SPDX-License-Identifier: Apache-2.0
#include "os/proc_files.h"

#include "tests/unit/cgroup/fake_tree.h"

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

}  // namespace
}  // namespace berth::os
