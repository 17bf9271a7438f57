// SPDX-License-Identifier: Apache-2.0
#include "os/lock_file.h"

#include "tests/silent_mount.h"
#include "tests/temporary_directory.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::os {
namespace {

namespace fs = std::filesystem;

class LockFileTest : public testing::Test {
 protected:
  std::string content() const {
    std::string line;
    std::getline(std::ifstream(file()), line);
    return line;
  }
  fs::path file() const { return base / "x.lock"; }
  const test::TemporaryDirectory directory_;
  const fs::path& base = directory_.path();
};

TEST_F(LockFileTest, OneHolderAtATimeWhoseProcessIsNamed) {
  auto first = take_lock(file(), "the thing", "boot-1");
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(first->before, "");
  const auto second = take_lock(file(), "the thing", "boot-1");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), model::ErrorKind::refused);
  const std::string said = second.error().message();
  EXPECT_NE(
      said.find(fmt::format("the thing is held by another berthd (pid {}, {})", getpid(), file().string())),
      std::string::npos)
      << said;
  EXPECT_NE(said.find("systemctl stop berthd.service"), std::string::npos) << said;
  *first = LockFile();
  EXPECT_TRUE(take_lock(file(), "the thing", "boot-1"));
}

TEST_F(LockFileTest, ItsTextOutlivesTheHolder) {
  ASSERT_TRUE(take_lock(file(), "it", "a-long-boot-id"));
  EXPECT_EQ(content(), fmt::format("{} a-long-boot-id", getpid()));
  const auto next = take_lock(file(), "it", "b");
  ASSERT_TRUE(next);
  EXPECT_EQ(text_of_holder(next->before), "a-long-boot-id");
  EXPECT_EQ(content(), fmt::format("{} b", getpid()));
  struct stat status {};
  ASSERT_EQ(stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U) << "a user who can open it could keep berthd from starting";
}

TEST_F(LockFileTest, AFileThatSaysNothingNamesNoProcess) {
  std::ofstream(file()) << "gibberish";
  const auto first = take_lock(file(), "it", "");
  ASSERT_TRUE(first);
  EXPECT_EQ(text_of_holder(first->before), "");
  std::ofstream(file()) << "gibberish";
  const auto second = take_lock(file(), "it", "");
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("pid not known"), std::string::npos);
}

TEST_F(LockFileTest, AnErrorNamesTheFile) {
  const auto missing = take_lock(base / "none" / "x.lock", "it", "");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("none/x.lock"), std::string::npos);
  fs::create_symlink(base / "elsewhere", file());
  EXPECT_FALSE(take_lock(file(), "it", "")) << "a symbolic link is not followed";
  EXPECT_FALSE(fs::exists(base / "elsewhere"));
}

TEST_F(LockFileTest, AFileOfTheKernelIsLockedWithoutAWordInIt) {
  EXPECT_FALSE(lock_in_place(file(), "it").value()) << "a kernel without that file";
  EXPECT_FALSE(fs::exists(file()));
  std::ofstream(file()) << "as it was";
  auto first = lock_in_place(file(), "it");
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE(*first);
  const auto second = lock_in_place(file(), "it");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), model::ErrorKind::refused);
  const std::string said = second.error().message();
  EXPECT_NE(said.find(fmt::format("(pid {}, {})", getpid(), file().string())), std::string::npos) << said;
  *first = FileDescriptor();
  EXPECT_TRUE(lock_in_place(file(), "it").value());
  EXPECT_EQ(content(), "as it was");
}

TEST_F(LockFileTest, OfAHolderThatWasKilledAndHangsItIsTakenOverByOne) {
  fs::create_directories(base / "point");
  test::HangingProcess holder(base / "point", [&] { return take_lock(file(), "it", ""); });
  if (!holder.hangs()) GTEST_SKIP() << "this machine does not let even root mount a FUSE file system";
  EXPECT_FALSE(take_lock(file(), "it", "")) << "it may go on as soon as the server answers";
  ASSERT_TRUE(holder.is_killed());
  auto heir = take_lock(file(), "it", "");
  ASSERT_TRUE(heir) << heir.error().message();
  EXPECT_EQ(heir->before, fmt::format("{} ", holder.pid()));
  const auto third = take_lock(file(), "it", "");
  ASSERT_FALSE(third);
  EXPECT_NE(third.error().message().find(fmt::format("pid {},", getpid())), std::string::npos);
  holder.end();
  EXPECT_FALSE(take_lock(file(), "it", "")) << "the end of the old holder frees nothing";
  *heir = LockFile();
  EXPECT_TRUE(take_lock(file(), "it", ""));
}

}  // namespace
}  // namespace berth::os
