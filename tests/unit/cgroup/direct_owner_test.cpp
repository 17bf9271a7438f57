// SPDX-License-Identifier: Apache-2.0
#include "cgroup/direct_owner.h"

#include "tests/no_threads.h"
#include "tests/patience.h"
#include "values.h"
#include "write_fixture.h"

#include <future>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::cgroup {
namespace {

using testing::HasSubstr;

class DirectOwnerTest : public testing::Test {
 protected:
  ControlTree tree;
  PatientOwner owner{tree.root()};

  static Target target(const FoundWorkload& workload) { return {workload.cgroup.get(), ""}; }
};

TEST_F(DirectOwnerTest, WritesAndPutsBack) {
  tree.make("a", "0-3");
  const FoundWorkload group = tree.found("a");
  const auto original = owner.original(target(group), Attribute::cpus);
  ASSERT_TRUE(original);
  ASSERT_TRUE(owner.set(target(group), cpus("1")));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "1");
  EXPECT_EQ(owner.reset(target(group), *original), cpus("0-3"));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-3");
}

// The kernel reclaims inside the write of a limit below the use. It may do so for minutes.
TEST_F(DirectOwnerTest, NeitherSetNorResetOfMemoryHighWaitsForTheKernelToReclaim) {
  tree.make("a", "", "max 100000", "1048576");
  const FoundWorkload group = tree.found("a");
  std::promise<void> end;
  const auto reclaimed = end.get_future().share();
  const auto hold = [reclaimed](const Cgroup& cgroup, const std::string& text) {
    const auto written = cgroup.write("memory.high", text);  // it is in force at once
    reclaimed.wait();
    return written;
  };
  DirectOwner patient{tree.root(), "/sys", hold};
  const auto original = patient.original(target(group), Attribute::memory_high);
  ASSERT_TRUE(original);
  // The write is in force once its thread has begun.
  EXPECT_TRUE(
      berth::test::eventually([&] { return patient.set(target(group), memory("2097152")).has_value(); }));
  const auto early = patient.reset(target(group), *original);
  ASSERT_FALSE(early) << "the kernel still works on the other limit";
  EXPECT_EQ(early.error().kind(), model::ErrorKind::transient);
  end.set_value();
  EXPECT_TRUE(berth::test::eventually([&] {
    const auto now = patient.reset(target(group), *original);
    return now && *now == original->value;
  }));
  EXPECT_EQ(tree.get("a", "memory.high"), "1048576");

  std::promise<void> never;
  const auto stuck = never.get_future().share();
  DirectOwner held{tree.root(), "/sys", [stuck](const Cgroup& cgroup, const std::string& text) {
                     const auto written = cgroup.write("memory.high", text);
                     stuck.wait();
                     return written;
                   }};
  tree.put("a", "memory.high", "4194304");
  EXPECT_TRUE(berth::test::eventually([&] {
    return held.reset(target(group), *original) == original->value;
  })) << "it is in force, though not done";
  never.set_value();
}

TEST_F(DirectOwnerTest, SlowWritesToAUsersGroupsLeaveRoomForOthers) {
  std::promise<void> end;
  const auto reclaimed = end.get_future().share();
  const auto hold = [reclaimed](const Cgroup& cgroup, const std::string& text) {
    const auto written = cgroup.write("memory.high", text);
    reclaimed.wait();
    return written;
  };
  DirectOwner patient{tree.root(), "/sys", hold, std::chrono::milliseconds(1)};
  const auto is_set = [&](const std::string& id) {
    const FoundWorkload group = tree.found(id);
    return berth::test::eventually([&] {
             const auto set = patient.set(target(group), memory("8192"));
             return set.has_value() || set.error().message().find("other cgroups") != std::string::npos;
           }) &&
           tree.get(id, "memory.high") == "8192";
  };
  constexpr int kTried = 10;
  constexpr uid_t kUser = 65534;
  int of_user = 0;
  for (int i = 0; i < kTried; ++i) {
    const std::string id = fmt::format("user{}", i);
    tree.make(id);
    if (chown((tree.root() / id).c_str(), kUser, kUser) != 0) GTEST_SKIP() << "needs root";
    if (is_set(id)) ++of_user;
  }
  EXPECT_EQ(of_user, 3);
  tree.make("of-root");
  EXPECT_TRUE(is_set("of-root"));
  end.set_value();
}

TEST_F(DirectOwnerTest, WithoutAThreadALimitIsTriedAgain) {
  tree.make("a");
  const FoundWorkload group = tree.found("a");
  {
    const berth::test::NoThreads none;
    const auto set = owner.set(target(group), memory("8192"));
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().kind(), model::ErrorKind::transient);
  }
  EXPECT_TRUE(owner.set(target(group), memory("8192")));
  EXPECT_EQ(tree.get("a", "memory.high"), "8192");
}

TEST_F(DirectOwnerTest, BindsMemoryToNodesAndPutsItBack) {
  tree.make("a");
  tree.put("a", "cpuset.mems", "");
  const FoundWorkload group = tree.found("a");
  const auto original = owner.original(target(group), Attribute::memory_nodes);
  ASSERT_TRUE(original);
  ASSERT_TRUE(owner.set(target(group), nodes("1")));
  EXPECT_EQ(tree.get("a", "cpuset.mems"), "1");
  EXPECT_EQ(owner.reset(target(group), *original), nodes(""));
  EXPECT_EQ(tree.get("a", "cpuset.mems"), "");
  // A node without memory, or one that a group above withholds.
  tree.put("a", "cpuset.mems.effective", "0");
  const auto refused = owner.set(target(group), nodes("1"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("asked for memory of NUMA nodes 1, granted 0"));
}

// The file system of the test does not do what the kernel does: the test writes that itself.
TEST_F(DirectOwnerTest, IdlePriorityComesWithTheWeight) {
  tree.make("a");
  tree.put("a", "cpu.weight", "300");
  const FoundWorkload group = tree.found("a");
  const auto original = owner.original(target(group), Attribute::cpu_idle);
  ASSERT_TRUE(original);
  EXPECT_EQ(text(std::optional<Value>(original->value)), "0 300");
  ASSERT_TRUE(owner.set(target(group), priority("1")));
  EXPECT_EQ(tree.get("a", "cpu.idle"), "1");
  EXPECT_EQ(tree.get("a", "cpu.weight"), "300") << "the kernel would refuse any write";
  tree.put("a", "cpu.weight", "1");
  EXPECT_EQ(text(owner.current(target(group), Attribute::cpu_idle)), "1") << "the weight says nothing now";
  EXPECT_EQ(owner.reset(target(group), *original), priority("0 300"));
  EXPECT_EQ(tree.get("a", "cpu.idle"), "0");
  EXPECT_EQ(tree.get("a", "cpu.weight"), "300");
}

TEST_F(DirectOwnerTest, TheWeightThatBerthLostComesBackAndAnotherOneStays) {
  tree.make("a");
  const FoundWorkload group = tree.found("a");
  const Original before{priority("0 300"), {}};
  ASSERT_TRUE(owner.relinquish(target(group), before, priority("1")));
  EXPECT_EQ(tree.get("a", "cpu.weight"), "300") << "cpu.idle was written alone";
  tree.put("a", "cpu.weight", "200");
  ASSERT_TRUE(owner.relinquish(target(group), before, priority("1")));
  EXPECT_EQ(tree.get("a", "cpu.weight"), "200") << "another program's";
}

TEST_F(DirectOwnerTest, AnOldKernelHasNoIdlePriority) {
  tree.make("a");
  std::filesystem::remove(tree.root() / "a/cpu.idle");
  const auto refused = owner.set(target(tree.found("a")), priority("1"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), model::ErrorKind::unavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr("older than Linux 5.15"));
}

TEST_F(DirectOwnerTest, AQuotaLeavesTheBurstAndSaysWhereThatIsInTheWay) {
  tree.make("a");
  tree.put("a", "cpu.max.burst", "50000");
  const FoundWorkload group = tree.found("a");
  ASSERT_TRUE(owner.set(target(group), quota("60000 100000")));
  EXPECT_EQ(tree.get("a", "cpu.max.burst"), "50000");
  EXPECT_EQ(burst_above(*group.cgroup, parse_cpu_max("60000 100000").value()), std::nullopt);
  EXPECT_EQ(burst_above(*group.cgroup, parse_cpu_max("max 100000").value()), std::nullopt);
  EXPECT_THAT(burst_above(*group.cgroup, parse_cpu_max("40000 100000").value()).value(),
              HasSubstr("cpu.max.burst is 50000 us"));
}

TEST_F(DirectOwnerTest, ABurstIsWrittenAndPutBack) {
  tree.make("a", "", "60000 100000");
  const FoundWorkload group = tree.found("a");
  const auto original = owner.original(target(group), Attribute::cpu_burst);
  ASSERT_TRUE(original);
  ASSERT_TRUE(owner.set(target(group), burst("60000")));
  EXPECT_EQ(tree.get("a", "cpu.max.burst"), "60000");
  EXPECT_EQ(text(owner.current(target(group), Attribute::cpu_burst)), "60000");
  EXPECT_EQ(owner.reset(target(group), *original), burst("0"));
  EXPECT_EQ(tree.get("a", "cpu.max.burst"), "0");
}

TEST_F(DirectOwnerTest, AQuotaThatGoesBackLowersALargerBurstOfAnotherProgram) {
  tree.make("a", "", "60000 100000");
  const FoundWorkload group = tree.found("a");
  const auto original = owner.original(target(group), Attribute::cpu_quota);
  ASSERT_TRUE(original);
  ASSERT_TRUE(owner.set(target(group), quota("900000 100000")));
  tree.put("a", "cpu.max.burst", "600000");
  EXPECT_EQ(owner.reset(target(group), *original), quota("60000 100000"));
  EXPECT_EQ(tree.get("a", "cpu.max.burst"), "60000");
  tree.put("a", "cpu.max.burst", "7000");
  ASSERT_TRUE(owner.set(target(group), quota("900000 100000")));
  EXPECT_EQ(owner.reset(target(group), *original), quota("60000 100000"));
  EXPECT_EQ(tree.get("a", "cpu.max.burst"), "7000") << "it is not in the way";
}

TEST_F(DirectOwnerTest, ABurstAboveTheQuotaIsNamedWithTheQuota) {
  tree.make("a", "", "60000 100000");
  const FoundWorkload group = tree.found("a");
  EXPECT_EQ(burst_above(*group.cgroup, burst("60000")), std::nullopt);
  EXPECT_THAT(burst_above(*group.cgroup, burst("60001")).value(), HasSubstr("the quota is 60000 us"));
  tree.put("a", "cpu.max", "max 100000");
  EXPECT_EQ(burst_above(*group.cgroup, burst("60001")), std::nullopt) << "the kernel compares with no quota";
}

TEST_F(DirectOwnerTest, AThousandthOfTheBurstIsAnOldKernelsWork) {
  tree.make("a");
  const FoundWorkload group = tree.found("a");
  const Original before{burst("0"), {}};
  EXPECT_EQ(owner.merged(target(group), before, burst("60000"), burst("60")), true);
  EXPECT_EQ(owner.merged(target(group), before, burst("60000"), burst("61")), false);
  EXPECT_EQ(owner.merged(target(group), before, quota("60000 100000"), quota("1000 100000")), false);
}

TEST_F(DirectOwnerTest, AnOldKernelHasNoBurst) {
  tree.make("a");
  std::filesystem::remove(tree.root() / "a/cpu.max.burst");
  const auto refused = owner.set(target(tree.found("a")), burst("1000"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), model::ErrorKind::unavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr("older than Linux 5.14"));
}

TEST_F(DirectOwnerTest, MissingControllerNamesTheGroupThatWithholdsIt) {
  put_file(tree.root() / "cgroup.subtree_control", "cpuset cpu memory\n");
  put_file(tree.root() / "a/cgroup.subtree_control", "cpu memory\n");
  std::filesystem::create_directories(tree.root() / "a/b");
  const FoundWorkload group = tree.found("a/b");
  const auto done = owner.set(target(group), cpus("1"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), model::ErrorKind::unavailable);
  EXPECT_THAT(done.error().message(), HasSubstr("cgroup.subtree_control of /a lacks it"));
  EXPECT_EQ(tree.get("a", "cgroup.subtree_control"), "cpu memory") << "it is not berth's to change";
}

TEST_F(DirectOwnerTest, ControllerThatTheHostLacksIsSaidSo) {
  put_file(tree.root() / "cgroup.controllers", "pids\n");
  put_file(tree.root() / "cgroup.subtree_control", "pids\n");
  std::filesystem::create_directories(tree.root() / "a");
  const FoundWorkload group = tree.found("a");
  const auto done = owner.set(target(group), cpus("1"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("the v2 hierarchy does not have it at all"));
}

TEST_F(DirectOwnerTest, VanishedGroupIsGone) {
  tree.make("a");
  const FoundWorkload group = tree.found("a");
  tree.remove("a");
  const auto done = owner.set(target(group), cpus("1"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), model::ErrorKind::gone);
}

TEST_F(DirectOwnerTest, RecreatedGroupIsNotMistakenForItsPredecessor) {
  tree.make("a", "0-3");
  const FoundWorkload group = tree.found("a");
  // Moved aside, so that the new directory cannot get its inode.
  std::filesystem::rename(tree.root() / "a", tree.root() / "old");
  tree.make("a", "0-7");
  const FoundWorkload successor = tree.found("a");
  tree.remove("old");
  EXPECT_FALSE(owner.set(target(group), cpus("1")));
  EXPECT_EQ(tree.get("a", "cpuset.cpus"), "0-7");
}

TEST_F(DirectOwnerTest, VcpusThatTheParentWithholdsAreAnError) {
  tree.make("a", "0-3");
  tree.make("a/b");
  tree.put("a/b", "cpuset.cpus.effective", "3");
  const FoundWorkload group = tree.found("a/b");
  const auto done = owner.set(target(group), cpus("3-4"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("asked for vCPUs 3-4, granted 3; /a is limited to 0-3"));
}

TEST_F(DirectOwnerTest, OfflineVcpuIsAnError) {
  tree.make("a");
  tree.put("a", "cpuset.cpus.effective", "1");
  const FoundWorkload group = tree.found("a");
  const auto done = owner.set(target(group), cpus("1,9"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("asked for vCPUs 1,9, granted 1; are the others online?"));
}

TEST_F(DirectOwnerTest, KernelsRefusalIsToldWithTheValueTried) {
  std::filesystem::create_directories(tree.root() / "a");
  std::filesystem::create_directory(tree.root() / "a/cpuset.cpus");  // cannot be opened for writing
  const FoundWorkload group = tree.found("a");
  const auto done = owner.set(target(group), cpus("2-3"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("writing \"2-3\" to cpuset.cpus of cgroup \"a\""));
}

TEST_F(DirectOwnerTest, ValueThatDoesNotStickIsAnError) {
  tree.make("a");
  std::filesystem::remove(tree.root() / "a/memory.high");
  // Swallows every write, as a control file does that another writer puts back at once.
  std::filesystem::create_symlink("/dev/null", tree.root() / "a/memory.high");
  const FoundWorkload group = tree.found("a");
  EXPECT_FALSE(owner.set(target(group), memory("8192")));
}

}  // namespace
}  // namespace berth::cgroup
