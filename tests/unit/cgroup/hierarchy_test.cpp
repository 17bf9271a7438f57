// SPDX-License-Identifier: Apache-2.0
#include "cgroup/hierarchy.h"

#include "tests/unit/cgroup/fake_tree.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

using test::FakeTree;

std::string cgroup2_line(const std::string& point, const std::string& shown = "/") {
  return "30 23 0:26 " + shown + " " + point +
         " rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate\n";
}

ListControllers listing(std::map<std::string, std::string> controllers) {
  return [controllers = std::move(controllers)]() -> ControllerMounts { return controllers; };
}

TEST(Hierarchy, IsFoundInMountinfo) {
  const FakeTree tree;
  tree.write_proc("self/mountinfo",
                  "22 1 8:1 / / rw - ext4 /dev/sda rw\n" + cgroup2_line(tree.root().string()));
  const auto found = find_hierarchy({}, tree.proc());
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->root, tree.root());
  EXPECT_FALSE(found->hybrid);
  EXPECT_EQ(found->controllers, (std::set<std::string>{"cpu", "cpuset", "io", "memory", "pids"}));
  EXPECT_EQ(found->proc_root, tree.proc());
}

// A test's host has a /proc of its own.
TEST(Hierarchy, OnTheHostItselfOnlyCgroupfsIsATree) {
  const FakeTree tree;
  const auto found = find_hierarchy(tree.root(), "/proc");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind(), model::ErrorKind::unavailable);
  EXPECT_NE(found.error().message().find("is no cgroup v2 tree: it is on a file system of another kind"),
            std::string::npos)
      << found.error().message();
  EXPECT_FALSE(is_kernels_own(tree.root()));
  EXPECT_FALSE(is_kernels_own(tree.root() / "none"));
  EXPECT_TRUE(find_hierarchy(tree.root(), tree.proc()));
}

TEST(Hierarchy, MountPointsAreUnescaped) {
  const FakeTree tree;
  const std::filesystem::path odd = tree.root() / "with space\\and backslash";
  std::filesystem::create_directory(odd);
  tree.write("with space\\and backslash", "cgroup.controllers", "cpu\n");
  tree.write_proc("self/mountinfo",
                  cgroup2_line(tree.root().string() + "/with\\040space\\134and\\040backslash"));
  const auto found = find_hierarchy({}, tree.proc());
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->root, odd);
}

TEST(Hierarchy, ControllersOnV1MakeItHybrid) {
  const FakeTree tree;
  tree.write("", "cgroup.controllers", "hugetlb\n");
  tree.write_proc("self/mountinfo",
                  "31 23 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
                  "32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                  "33 23 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset,noprefix\n" +
                      cgroup2_line(tree.root().string()));
  const auto found = find_hierarchy({}, tree.proc(),
                                    listing({{"cpu", "/sys/fs/cgroup/cpu,cpuacct"},
                                             {"cpuacct", "/sys/fs/cgroup/cpu,cpuacct"},
                                             {"cpuset", "/sys/fs/cgroup/cpuset"},
                                             {"hugetlb", tree.root().string()}}));
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_TRUE(found->hybrid);
  EXPECT_EQ(found->v1_mounts, (std::map<std::string, std::string>{{"cpu", "/sys/fs/cgroup/cpu,cpuacct"},
                                                                  {"cpuacct", "/sys/fs/cgroup/cpu,cpuacct"},
                                                                  {"cpuset", "/sys/fs/cgroup/cpuset"}}));
}

TEST(Hierarchy, OfSeveralMountsTheOneThatShowsTheWholeTreeIsTaken) {
  const FakeTree tree;
  tree.write_proc("self/mountinfo", cgroup2_line("/somewhere/else", "/system.slice/x.service") +
                                        cgroup2_line(tree.root().string()));
  const auto found = find_hierarchy({}, tree.proc());
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->root, tree.root());
}

TEST(Hierarchy, AGivenRootIsTakenAsItIs) {
  const FakeTree tree;
  tree.write_proc("self/mountinfo", "33 23 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" +
                                        cgroup2_line("/sys/fs/cgroup/unified"));
  const auto found = find_hierarchy(tree.root(), tree.proc());
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->root, tree.root());
  EXPECT_FALSE(found->hybrid);
}

TEST(Hierarchy, AGivenMountIsJudgedLikeAFoundOne) {
  const FakeTree tree;
  tree.write_proc("self/mountinfo", "33 23 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" +
                                        cgroup2_line(tree.root().string()));
  const auto list = listing({{"cpuset", "/sys/fs/cgroup/cpuset"}});
  EXPECT_TRUE(find_hierarchy(tree.root() / "", tree.proc(), list).value().hybrid);
}

TEST(Hierarchy, WithoutV2TheErrorSaysWhatWasLookedAt) {
  const FakeTree tree;
  const auto unreadable = find_hierarchy({}, tree.proc());
  ASSERT_FALSE(unreadable);
  EXPECT_EQ(unreadable.error().kind(), model::ErrorKind::unavailable);
  EXPECT_NE(unreadable.error().message().find("self/mountinfo cannot be read"), std::string::npos);

  tree.write_proc("self/mountinfo", "33 23 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
  const auto v1_only = find_hierarchy({}, tree.proc());
  ASSERT_FALSE(v1_only);
  EXPECT_NE(v1_only.error().message().find("only cgroup v1"), std::string::npos) << v1_only.error().message();
}

TEST(Hierarchy, TheControllersOfThisHostAreWhereItsKernelHasThem) {
  const auto controllers = mounted_controllers();
  if (!controllers) GTEST_SKIP() << controllers.error().message();
  for (const auto& [name, point] : *controllers) {
    EXPECT_TRUE(std::filesystem::exists(point)) << name << " at " << point;
  }
}

TEST(Hierarchy, AHostWhoseControllersCannotBeListedHasItsV2Tree) {
  const FakeTree tree;
  tree.write_proc("self/mountinfo", "33 23 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" +
                                        cgroup2_line(tree.root().string()));
  const auto found = find_hierarchy({}, tree.proc(), []() -> ControllerMounts {
    return model::fail(model::ErrorKind::unavailable, "libcgroup: no");
  });
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->root, tree.root());
  EXPECT_FALSE(found->hybrid);
}

TEST(Hierarchy, ADirectoryThatIsNoV2TreeIsRefused) {
  const FakeTree tree;
  tree.make("plain");
  const auto found = find_hierarchy(tree.root() / "plain", tree.proc());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind(), model::ErrorKind::unavailable);
  EXPECT_NE(found.error().message().find("is no cgroup v2 tree"), std::string::npos)
      << found.error().message();
}

TEST(Hierarchy, MalformedMountinfoLinesArePassedOver) {
  const FakeTree tree;
  tree.write_proc("self/mountinfo",
                  "\n30\n30 23 0:26 / /x rw\n30 23 0:26 / /x rw -\n30 23 0:26 / /x rw - cgroup2\n" +
                      cgroup2_line(tree.root().string()));
  EXPECT_EQ(find_hierarchy({}, tree.proc()).value().root, tree.root());
}

const model::Capability& capability(const std::vector<model::Capability>& all, const std::string& name) {
  for (const model::Capability& each : all) {
    if (each.name == name) return each;
  }
  throw std::runtime_error("no capability " + name);
}

TEST(Capabilities, AUnifiedTreeWithPressureHasThemAll) {
  const FakeTree tree;
  tree.write("", "cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  const auto all = capabilities(tree.hierarchy());
  ASSERT_EQ(all.size(), 5U);
  for (const model::Capability& each : all) {
    EXPECT_TRUE(each.available) << each.name << ": " << each.detail;
    EXPECT_FALSE(each.detail.empty());
  }
}

TEST(Capabilities, WhatIsMissingSaysWhyAndWhatBerthDoesWithout) {
  const FakeTree tree;
  Hierarchy hierarchy = tree.hierarchy();
  hierarchy.controllers = {"cpu"};
  hierarchy.hybrid = true;
  hierarchy.v1_mounts = {{"cpuset", "/sys/fs/cgroup/cpuset"}};
  const auto all = capabilities(hierarchy);
  EXPECT_TRUE(capability(all, "cgroup-v2").available);
  EXPECT_NE(capability(all, "cgroup-v2").detail.find("hybrid"), std::string::npos);
  EXPECT_FALSE(capability(all, "cpuset-controller").available);
  EXPECT_EQ(capability(all, "cpuset-controller").detail,
            "on cgroup v1 at /sys/fs/cgroup/cpuset, which berth leaves alone; berth plans pins and cannot "
            "apply them");
  EXPECT_TRUE(capability(all, "cpu-controller").available);
  EXPECT_FALSE(capability(all, "memory-controller").available);
  EXPECT_NE(capability(all, "memory-controller").detail.find("cgroup.controllers"), std::string::npos);
  EXPECT_FALSE(capability(all, "psi").available);
  EXPECT_NE(capability(all, "psi").detail.find("psi=1"), std::string::npos);
}

}  // namespace
}  // namespace berth::cgroup
