// SPDX-License-Identifier: Apache-2.0
#include "os/safe_path.h"
#include "tests/silent_mount.h"
#include "tests/temporary_directory.h"

#include <array>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::os {
namespace {

using model::ErrorKind;

class UserFileTest : public ::testing::Test {
 protected:
  UserFileTest() { std::ofstream(root / "log") << "text"; }
  static ErrorKind problem(const std::filesystem::path& path) {
    const auto opened = open_user_file(path);
    EXPECT_FALSE(opened) << path;
    return opened ? ErrorKind::io : opened.error().kind();
  }
  const test::TemporaryDirectory directory_;
  const std::filesystem::path& root = directory_.path();
};

TEST_F(UserFileTest, FilesAndDirectoriesAreOpened) {
  const auto file = open_user_file(root / "x" / ".." / "log");
  ASSERT_TRUE(file) << file.error().message();
  std::array<char, 8> text{};
  EXPECT_EQ(read(file->get(), text.data(), text.size()), 4);
  EXPECT_TRUE(open_user_file(root));
}

TEST_F(UserFileTest, WhatIsNotThereIsGone) { EXPECT_EQ(problem(root / "other"), ErrorKind::gone); }

TEST_F(UserFileTest, WhatMayBlockOrDoesThingsWhenOpenedIsRefused) {
  ASSERT_EQ(mkfifo((root / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(problem(root / "fifo"), ErrorKind::refused);
  std::filesystem::create_symlink(root / "log", root / "link");
  EXPECT_EQ(problem(root / "link"), ErrorKind::refused);
  const auto link = open_user_file(root / "link");
  ASSERT_FALSE(link);
  EXPECT_THAT(link.error().message(), testing::HasSubstr("/link is a symbolic link, which is not followed"));
}

TEST_F(UserFileTest, FileSystemsThatThisHostDoesNotKeepItselfAreNotEntered) {
  EXPECT_EQ(problem("/proc/self/status"), ErrorKind::refused);
  EXPECT_EQ(problem("/sys/kernel"), ErrorKind::refused);
}

// As a host has /home on a file server, behind a symbolic link of root's.
TEST_F(UserFileTest, ALinkLeadsToNoFileServerThatMayNotAnswer) {
  std::filesystem::create_directories(root / "net/home");
  std::filesystem::create_directory_symlink("net/home", root / "home");
  bool hung = false;
  const auto kind = test::beside_silent_mount(
      root / "net/home", [&] { return problem(root / "home/log"); }, hung);
  if (!kind) GTEST_SKIP() << "this machine does not let even root mount a FUSE file system";
  EXPECT_FALSE(hung);
  EXPECT_EQ(*kind, ErrorKind::refused);
}

}  // namespace
}  // namespace berth::os
