// SPDX-License-Identifier: Apache-2.0
#include "cgroup/cgroup.h"

#include "tests/unit/cgroup/fake_tree.h"
#include "tests/unit/cgroup/own_mounts.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

using model::ErrorKind;
using test::FakeTree;

TEST(Cgroup, ReadsAndWritesItsControlFiles) {
  const FakeTree tree;
  tree.make("a.slice/b.service");
  tree.write("a.slice/b.service", "cpu.max", "max 100000\n");
  const auto cgroup = Cgroup::open(tree.root(), "a.slice/b.service");
  ASSERT_TRUE(cgroup) << cgroup.error().message();
  EXPECT_EQ((*cgroup)->path(), "a.slice/b.service");
  EXPECT_EQ((*cgroup)->read("cpu.max").value(), "max 100000\n");
  ASSERT_TRUE((*cgroup)->write("cpu.max", "50000 100000"));
  EXPECT_EQ(tree.read("a.slice/b.service", "cpu.max"), "50000 100000");
}

TEST(Cgroup, AShorterValueReplacesALongerOneWhole) {
  const FakeTree tree;
  tree.make("a");
  tree.write("a", "cpuset.cpus", "0-3,8-11");
  const auto cgroup = Cgroup::open(tree.root(), "a").value();
  ASSERT_TRUE(cgroup->write("cpuset.cpus", "1"));
  EXPECT_EQ(tree.read("a", "cpuset.cpus"), "1");
}

TEST(Cgroup, ReadsAFileLongerThanOneBuffer) {
  const FakeTree tree;
  tree.make("a");
  const std::string text(10'000, 'x');
  tree.write("a", "cpuset.cpus", text);
  EXPECT_EQ(Cgroup::open(tree.root(), "a").value()->read("cpuset.cpus").value(), text);
}

TEST(Cgroup, AnEmptyValueIsWrittenAsALineBreak) {
  const FakeTree tree;
  tree.make("a");
  tree.write("a", "cpuset.cpus", "0-3");
  ASSERT_TRUE(Cgroup::open(tree.root(), "a").value()->write("cpuset.cpus", ""));
  EXPECT_EQ(tree.read("a", "cpuset.cpus"), "\n");
}

TEST(Cgroup, NeverCreatesAFile) {
  const FakeTree tree;
  tree.make("a");
  const auto cgroup = Cgroup::open(tree.root(), "a").value();
  const auto written = cgroup->write("cpu.max", "max");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind(), ErrorKind::gone);
  EXPECT_NE(written.error().message().find("writing \"max\" to cpu.max of cgroup \"a\""), std::string::npos)
      << written.error().message();
  EXPECT_FALSE(std::filesystem::exists(tree.root() / "a" / "cpu.max"));
}

TEST(Cgroup, PathsThatLeadOutOfTheTreeAreRefused) {
  const FakeTree tree;
  tree.make("a/b");
  for (const char* path : {"/a", "..", "a/../..", "a/..", "a//b", "a/", ".", "a/./b", "/"}) {
    const auto cgroup = Cgroup::open(tree.root(), path);
    ASSERT_FALSE(cgroup) << path;
    EXPECT_EQ(cgroup.error().kind(), ErrorKind::invalid_input) << path;
  }
  EXPECT_FALSE(Cgroup::open(tree.root(), std::string("a\0b", 3)));
}

TEST(Cgroup, FileNamesThatLeadElsewhereAreRefused) {
  const FakeTree tree;
  tree.make("a/b");
  tree.write("", "cpu.max", "max");
  const auto cgroup = Cgroup::open(tree.root(), "a").value();
  for (const char* file : {"../cpu.max", "b/cgroup.events", "", ".", ".."}) {
    EXPECT_FALSE(cgroup->read(file)) << file;
    EXPECT_FALSE(cgroup->write(file, "x")) << file;
    EXPECT_FALSE(cgroup->has(file)) << file;
  }
  EXPECT_EQ(tree.read("", "cpu.max"), "max");
}

TEST(Cgroup, ALinkIsNoCgroup) {
  const FakeTree tree;
  tree.make("a");
  std::filesystem::create_directory_symlink(tree.root() / "a", tree.root() / "link");
  EXPECT_FALSE(Cgroup::open(tree.root(), "link"));
}

TEST(Cgroup, AMissingGroupIsGone) {
  const FakeTree tree;
  const auto cgroup = Cgroup::open(tree.root(), "no.slice/such.service");
  ASSERT_FALSE(cgroup);
  EXPECT_EQ(cgroup.error().kind(), ErrorKind::gone);
  EXPECT_NE(cgroup.error().message().find("no.slice/such.service"), std::string::npos);
}

TEST(Cgroup, TheRootIsAGroupToo) {
  const FakeTree tree;
  const auto root = Cgroup::open(tree.root(), "");
  ASSERT_TRUE(root);
  EXPECT_TRUE((*root)->has("cgroup.controllers"));
  EXPECT_FALSE((*root)->has("cpu.max"));
  EXPECT_TRUE((*root)->is_current());
}

TEST(Cgroup, OneThatTookOverThePathIsNotTheSame) {
  const FakeTree tree;
  tree.make("a");
  const auto cgroup = Cgroup::open(tree.root(), "a").value();
  EXPECT_TRUE(cgroup->is_current());
  tree.remove("a");
  EXPECT_FALSE(cgroup->is_current());
  tree.make("a");  // the open descriptor keeps the old inode from being used again
  EXPECT_FALSE(cgroup->is_current());
  EXPECT_NE(Cgroup::open(tree.root(), "a").value()->id(), cgroup->id());
}

TEST(Cgroup, IsNotOpenedInAFileSystemThatIsMountedInTheTree) {
  const FakeTree tree;
  tree.make("user/mine");
  const auto before = Cgroup::open(tree.root(), "user/mine").value();
  std::string at_mount;
  std::string below;
  bool current = true;
  const bool mounted = test::with_mount_at(tree.root() / "user/mine", [&] {
    tree.make("user/mine/inner");
    const auto refused = Cgroup::open(tree.root(), "user/mine");
    const auto refused_below = Cgroup::open(tree.root(), "user/mine/inner");
    if (!refused) at_mount = refused.error().message();
    if (!refused_below) below = refused_below.error().message();
    current = before->is_current();
  });
  if (!mounted) GTEST_SKIP() << "mounting needs root";
  EXPECT_NE(at_mount.find("another file system is mounted there"), std::string::npos) << at_mount;
  EXPECT_NE(below.find("another file system is mounted there"), std::string::npos) << below;
  EXPECT_FALSE(current);
  EXPECT_TRUE(before->is_current());
}

}  // namespace
}  // namespace berth::cgroup
