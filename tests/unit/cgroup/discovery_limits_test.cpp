// SPDX-License-Identifier: Apache-2.0
// What users make in the tree has limits.
#include "cgroup/discovery_tree.h"
#include "tests/unit/cgroup/discovery_fixture.h"
#include "tests/unit/cgroup/own_mounts.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::cgroup {
namespace {

TEST_F(DiscoveryTest, WhatAUserMountsInTheTreeIsNotEntered) {
  tree.make("user/mine");
  tree.make("user/other");
  Ids found;
  std::vector<std::string> warnings;
  const bool mounted = test::with_mount_at(tree.root() / "user/mine", [&] {
    tree.make("user/mine/inner");
    start({rule("user/*", WorkloadClass::best_effort), rule("user/mine/*", WorkloadClass::best_effort)});
    for (const auto& [id, workload] : discovery->workloads()) found.push_back(id);
    warnings = changes.warnings;
  });
  if (!mounted) GTEST_SKIP() << "mounting needs root";
  EXPECT_EQ(found, Ids{"user/other"});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0],
            "another file system is mounted at cgroup user/mine, so it and all below it are left alone");
}

TEST_F(DiscoveryTest, AUserWhoRefusesToStopIsNotListenedTo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  tree.make("user");
  ASSERT_EQ(chown((tree.root() / "user").c_str(), 1000, 1000), 0);
  for (int i = 0; i < 30; ++i) {
    const std::string path = "user/" + std::to_string(i);
    tree.make(path);
    if (!mark(path, "user.berth.class", "latency-sensitive"))
      GTEST_SKIP() << "no user attributes on this file system";
    ASSERT_EQ(chown((tree.root() / path).c_str(), 1000, 1000), 0);
  }
  start({});
  EXPECT_EQ(changes.warnings.size(), 10U);
}

TEST_F(DiscoveryTest, VeryDeepTreesAreCutOff) {
  std::string path = "d";
  for (int i = 0; i < 100; ++i) path += "/d";
  tree.make(path);
  start({best_effort("**/leaf"), best_effort("marker-*")});
  EXPECT_TRUE(warned({"deeper than 64 levels"}));
  tree.make(path + "/leaf");
  catch_up();
  EXPECT_FALSE(has(path + "/leaf"));
}

TEST_F(DiscoveryTest, GroupsThatAreNoWorkloadsCostNoDescriptor) {
  for (int i = 0; i < 200; ++i) tree.make("idle/" + std::to_string(i));
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  const auto before = open_files();
  start({best_effort("idle/7")});
  EXPECT_LE(open_files() - before, 4);  // inotify, epoll, timer, the one workload
}

TEST_F(DiscoveryTest, WorkloadsEndWhereTheOpenFilesWould) {
  for (int i = 0; i < 50; ++i) tree.make("g" + std::to_string(i));
  // In a process of its own: a hard limit cannot be raised again.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit few{80, 80};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(10);
    start({best_effort("g*")});
    if (discovery->workloads().size() != 40) _exit(11);
    _exit(changes.warnings.size() == 1 && warned({"40 workloads", "limit of open files"}) ? 0 : 12);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "11: too many or too few, 12: not said once";
}

TEST_F(DiscoveryTest, UsersWorkloadsLeaveHalfOfTheLimitToRoots) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  tree.make("a");
  ASSERT_EQ(chown((tree.root() / "a").c_str(), 1000, 1000), 0);
  for (int i = 0; i < 50; ++i) tree.make("a/g" + std::to_string(i));
  for (int i = 0; i < 15; ++i) tree.make("web" + std::to_string(i));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit few{80, 80};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(10);
    start({best_effort("a/*"), best_effort("web*")});
    if (discovery->workloads().size() != 35 || !has("web14")) _exit(11);
    _exit(changes.warnings.size() == 1 && warned({"20 workloads of users"}) ? 0 : 12);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "11: too many or too few, 12: not said once";
}

TEST_F(DiscoveryTest, GroupsThatCannotBeNamedAreLeftOutWithOneMessage) {
  tree.make("a/evil\x1b[31m");
  tree.make("a/\xff\xfe");
  tree.make("a/\xff\xfe/inside");
  tree.make("a/good");
  start({best_effort("a/**")});
  EXPECT_EQ(ids(), (Ids{"a/good"}));
  ASSERT_EQ(changes.warnings.size(), 1U);
  EXPECT_TRUE(warned({"left alone", "a/evil\\x1b[31m"}));
}

TEST_F(DiscoveryTest, AGroupThatCannotBeNamedComesAndGoesWithoutATrace) {
  tree.make("a/good");
  start({best_effort("a/**"), best_effort("marker-*")});
  tree.make("a/caf\xe9");  // Latin-1
  catch_up();
  EXPECT_EQ(changes.appeared, Ids{});
  EXPECT_EQ(changes.warnings.size(), 1U);
  EXPECT_TRUE(warned({"a/caf\\xe9"}));
  tree.remove("a/caf\xe9");
  tree.make("a/caf\xe8");
  catch_up();
  EXPECT_EQ(changes.appeared, Ids{});
  EXPECT_EQ(changes.vanished, Ids{});
  EXPECT_TRUE(changes.warnings.empty());
  EXPECT_TRUE(has("a/good"));
}

TEST_F(DiscoveryTest, AGroupMovedToANameThatCannotBeHadVanishes) {
  tree.make("a/job");
  start({best_effort("a/*")});
  std::filesystem::rename(tree.root() / "a/job", tree.root() / "a/j\xff");
  ASSERT_TRUE(wait([&] { return !has("a/job"); }));
  EXPECT_EQ(changes.vanished, (Ids{"a/job"}));
}

TEST_F(DiscoveryTest, AWorkloadMayHoldGroupsThatCannotBeNamed) {
  tree.make("a/job");
  tree.make("a/job/\xff");
  start({best_effort("a/*")});
  EXPECT_EQ(ids(), (Ids{"a/job"}));
}

TEST_F(DiscoveryTest, TheOutermostGroupsOfUsersWithManyCgroupsAreKnown) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  const std::vector<std::pair<std::string, int>> users{{"users/a", 8}, {"users/b", 5}, {"users/c", 4}};
  for (std::size_t i = 0; i < users.size(); ++i) {
    const auto& [path, groups] = users[i];
    tree.make(path);
    for (int group = 0; group < groups; ++group) tree.make(path + "/" + std::to_string(group));
    ASSERT_EQ(chown((tree.root() / path).c_str(), static_cast<uid_t>(1000 + i), 1000), 0);
  }
  for (int group = 0; group < 20; ++group) tree.make("root/" + std::to_string(group));
  start({});
  const auto id_of = [&](std::size_t user) {
    return Cgroup::open(tree.root(), users[user].first).value()->id();
  };
  using Groups = std::vector<std::uint64_t>;
  EXPECT_EQ(discovery->crowds(8, 100), Groups());
  EXPECT_EQ(discovery->crowds(7, 100), Groups{id_of(0)});
  EXPECT_EQ(discovery->crowds(100, 9), Groups{id_of(0)}) << "the rest fits";
  EXPECT_EQ(discovery->crowds(100, 8), (Groups{id_of(0), id_of(1)}));
}

TEST_F(DiscoveryTest, OneUsersCgroupsHaveALimit) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  tree.write_proc("sys/fs/inotify/max_user_watches", "1000000\n");
  tree.make("user");
  ASSERT_EQ(chown((tree.root() / "user").c_str(), 1000, 1000), 0);
  const auto group = [&](std::size_t number) {
    return tree.root() / "user" / ("g" + std::to_string(number));
  };
  for (std::size_t i = 0; i < kMostGroupsOfUser + 10; ++i) std::filesystem::create_directory(group(i));
  tree.make("web");
  start({best_effort("web"), best_effort("user/late*"), best_effort("marker-*")});
  EXPECT_EQ(ids(), Ids{"web"});
  EXPECT_EQ(changes.warnings.size(), 1U);
  EXPECT_TRUE(warned({"uid 1000 has more than 16384 cgroups, the limit for one user"}));
  tree.make("user/late");
  catch_up();
  EXPECT_FALSE(has("user/late"));
  EXPECT_TRUE(changes.warnings.empty()) << "said once";
  for (std::size_t i = 0; i < 20; ++i) std::filesystem::remove(group(i));
  tree.make("user/later");
  EXPECT_TRUE(wait([&] { return has("user/later"); })) << "there is room again";
}

// Of the whole program.
std::size_t inotify_watches() {
  std::size_t watches = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) watches += line.starts_with("inotify wd:") ? 1 : 0;
  }
  return watches;
}

TEST_F(DiscoveryTest, GroupsOfUsersTakeAPartOfRootsWatches) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  tree.write_proc("sys/fs/inotify/max_user_watches", "400\n");
  for (const auto& [user, uid] : {std::pair("u1", 1001), std::pair("u2", 1002), std::pair("u3", 1003)}) {
    tree.make(user);
    ASSERT_EQ(chown((tree.root() / user).c_str(), uid, uid), 0);
    for (int i = 0; i < 200; ++i) tree.make(std::string(user) + "/g" + std::to_string(i));
  }
  tree.make("web");
  start({best_effort("web"), best_effort("u1/late")});
  EXPECT_LE(inotify_watches(), 100U + 20U);
  EXPECT_GE(inotify_watches(), 100U);
  EXPECT_TRUE(warned({"max_user_watches"}));
  EXPECT_EQ(changes.warnings.size(), 1U) << "said once";
  tree.make("web2");
  tree.make("u3/g7/inner");
  for (int i = 0; i < 200; ++i) tree.remove("u1/g" + std::to_string(i));
  tree.make("u1/late");
  EXPECT_TRUE(wait([&] { return has("u1/late"); })) << "a walk finds it";
}

TEST_F(DiscoveryTest, GroupsOfOneUserTakeHalfOfThatPart) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  tree.write_proc("sys/fs/inotify/max_user_watches", "400\n");
  tree.make("u1");
  ASSERT_EQ(chown((tree.root() / "u1").c_str(), 1001, 1001), 0);
  for (int i = 0; i < 200; ++i) tree.make("u1/g" + std::to_string(i));
  tree.make("web");
  start({best_effort("web")});
  EXPECT_LE(inotify_watches(), 50U + 20U);
  EXPECT_GE(inotify_watches(), 50U);
  EXPECT_TRUE(warned({"uid 1001", "max_user_watches"}));
}

TEST_F(DiscoveryTest, OneUsersWorkloadsHaveALimit) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give directories away";
  tree.write_proc("sys/fs/inotify/max_user_watches", "1000000\n");
  tree.make("user");
  ASSERT_EQ(chown((tree.root() / "user").c_str(), 1000, 1000), 0);
  for (std::size_t i = 0; i < kMostWorkloadsOfUser + 10; ++i) tree.make("user/g" + std::to_string(i));
  tree.make("web");
  start({best_effort("user/*"), best_effort("web")});
  EXPECT_TRUE(has("web"));
  EXPECT_EQ(discovery->workloads().size(), kMostWorkloadsOfUser + 1);
  EXPECT_EQ(changes.warnings.size(), 1U);
  EXPECT_TRUE(warned({"uid 1000 has more than 4096 workloads, the limit for one user"}));
  EXPECT_EQ(discovery->workloads().at("web").ground.user, std::nullopt);
  EXPECT_EQ(discovery->workloads().begin()->second.ground.user, std::optional<uid_t>(1000));
}

}  // namespace
}  // namespace berth::cgroup
