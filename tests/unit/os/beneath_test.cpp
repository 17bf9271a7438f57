// SPDX-License-Identifier: Apache-2.0
#include "os/beneath.h"

#include "tests/temporary_directory.h"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

namespace berth::os {
namespace {

namespace fs = std::filesystem;

class BeneathTest : public testing::Test {
 protected:
  BeneathTest() { fs::create_directories(base / "a/b/c"); }
  // 0 where it opens.
  int problem_of(std::string_view path) const {
    const auto opened = open_beneath(base, path);
    return opened ? 0 : errno;
  }
  const test::TemporaryDirectory directory_;
  const fs::path& base = directory_.path();
};

TEST_F(BeneathTest, OpensDirectoriesForReading) {
  const auto opened = open_beneath(base, "a/b");
  ASSERT_TRUE(opened);
  struct stat reached {};
  struct stat expected {};
  ASSERT_EQ(fstat(opened.get(), &reached), 0);
  ASSERT_EQ(stat((base / "a/b").c_str(), &expected), 0);
  EXPECT_EQ(reached.st_ino, expected.st_ino);
  EXPECT_EQ(problem_of(""), 0);
  EXPECT_EQ(problem_of("a/none"), ENOENT);
}

TEST_F(BeneathTest, TheRootAloneMayBeReachedThroughALink) {
  fs::create_directory_symlink(base / "a", base / "link");
  EXPECT_TRUE(open_beneath(base / "link", "b/c"));
  EXPECT_TRUE(open_beneath(base / "link", ""));
  EXPECT_EQ(problem_of("link"), ENOTDIR);
  EXPECT_EQ(problem_of("link/b"), ENOTDIR);
}

TEST_F(BeneathTest, NoPathLeadsOut) {
  for (const char* path : {"..", "a/..", "a/../..", "/a", "a//b", "a/", "."}) {
    const int problem = problem_of(path);
    EXPECT_TRUE(problem == EINVAL || std::string(path) == "a/") << path << " " << problem;
  }
}

// In a mount namespace of its own, which one thread can have.
TEST_F(BeneathTest, WhatIsMountedBelowIsNotEntered) {
  std::optional<int> at_mount;
  int below_mount = 0;
  int at_bind_mount = 0;
  int beside = -1;
  bool from_mount = false;
  std::thread([&] {
    if (unshare(CLONE_NEWNS) != 0) return;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    if (mount("none", (base / "a/b").c_str(), "tmpfs", 0, "mode=0755,size=64k") != 0) return;
    fs::create_directory(base / "a/b/inside");
    fs::create_directories(base / "bound");
    if (mount((base / "a").c_str(), (base / "bound").c_str(), nullptr, MS_BIND, nullptr) != 0) return;
    at_mount = problem_of("a/b");
    below_mount = problem_of("a/b/inside");
    at_bind_mount = problem_of("bound");
    beside = problem_of("a");
    from_mount = static_cast<bool>(open_beneath(base / "a/b", "inside"));
  }).join();
  if (!at_mount) GTEST_SKIP() << "mounting needs root";
  EXPECT_EQ(*at_mount, EXDEV);
  EXPECT_EQ(below_mount, EXDEV);
  EXPECT_EQ(at_bind_mount, EXDEV);
  EXPECT_EQ(beside, 0);
  EXPECT_TRUE(from_mount) << "the root itself may be a mount, as /sys/fs/cgroup is";
}

}  // namespace
}  // namespace berth::os
