// SPDX-License-Identifier: Apache-2.0
#include "os/safe_path.h"

#include "tests/silent_mount.h"
#include "tests/temporary_directory.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::os {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

class ProgressPathTest : public testing::Test {
 protected:
  ProgressPathTest() {
    fs::create_directories(base / "own/m");
    fs::create_directories(base / "theirs/m");
  }
  const test::TemporaryDirectory directory_;
  const fs::path& base = directory_.path();
};

// "" where the way goes through.
std::string problem_of(const fs::path& path) {
  const auto way = walk_to(path);
  return way.file ? "" : way.file.error().message();
}

TEST_F(ProgressPathTest, TheDeepestDirectoryIsKnownAndWhatIsAwaitedInIt) {
  const auto way = walk_to(base / "own/not/there");
  ASSERT_FALSE(way.file);
  EXPECT_EQ(way.file.error().kind(), model::ErrorKind::gone);
  EXPECT_EQ(way.awaited, "not");
  struct stat reached {};
  struct stat expected {};
  ASSERT_EQ(fstat(way.directory.get(), &reached), 0);
  ASSERT_EQ(stat((base / "own").c_str(), &expected), 0);
  EXPECT_EQ(reached.st_ino, expected.st_ino);
}

TEST_F(ProgressPathTest, ALinkMayLeadUpwards) {
  std::ofstream(base / "own/f") << "0.1\n";
  fs::create_directory_symlink("../own/./", base / "theirs/back");
  EXPECT_EQ(problem_of(base / "theirs/back/f"), "");
}

// In a mount namespace of its own, which one thread can have.
TEST_F(ProgressPathTest, WhatIsMountedIsEnteredOnlyWhereOthersCannotHaveChangedIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can mount";
  ASSERT_EQ(chown((base / "theirs").c_str(), kNobody, kNobody), 0);
  std::optional<std::string> in_own;
  std::optional<std::string> in_theirs;
  std::optional<std::string> in_shared;
  std::thread([&] {
    if (unshare(CLONE_NEWNS) != 0) return;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    for (const char* name : {"own", "theirs"}) {
      const auto point = base / name / "m";
      if (mount("none", point.c_str(), "tmpfs", 0, "mode=0755,size=64k") != 0) return;
      std::ofstream(point / "f") << "0.1\n";
    }
    in_own = problem_of(base / "own/m/f");
    in_theirs = problem_of(base / "theirs/m/f");
    fs::permissions(base / "own", fs::perms::all);
    in_shared = problem_of(base / "own/m/f");
  }).join();
  if (!in_own) GTEST_SKIP() << "this machine does not let even root mount";
  EXPECT_EQ(*in_own, "");
  EXPECT_NE(in_theirs->find("what is mounted at \"m\" is not entered"), std::string::npos) << *in_theirs;
  EXPECT_NE(in_shared->find("is not entered"), std::string::npos) << *in_shared;
}

// As the owner of `theirs` can mount there, although root alone may change the directory that it is in.
TEST_F(ProgressPathTest, AFileServerThatNeverAnswersIsNotAsked) {
  bool hung = false;
  for (const fs::path& point : {base / "own/m", base / "theirs"}) {
    const auto problem = test::beside_silent_mount(
        point, [&] { return problem_of(point / "f"); }, hung);
    if (!problem) GTEST_SKIP() << "this machine does not let even root mount a FUSE file system";
    EXPECT_FALSE(hung);
    EXPECT_NE(problem->find("is not entered: it is a file system that may hang (fuse)"), std::string::npos)
        << *problem;
  }
}

}  // namespace
}  // namespace berth::os
