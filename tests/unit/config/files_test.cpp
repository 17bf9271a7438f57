// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"
#include "tests/temporary_directory.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::config {
namespace {

namespace fs = std::filesystem;
using test::TemporaryDirectory;

std::string error_of(const fs::path& file) {
  const auto loaded = load(file);
  return loaded ? "" : loaded.error().message();
}

TEST(Load, AMissingFileMeansDefaults) {
  const TemporaryDirectory dir;
  const auto loaded = load(dir.path() / "berth.toml");
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->mode, Mode::observe);
  EXPECT_TRUE(load(dir.path() / "no" / "such" / "directory.toml"));
}

TEST(Load, DropInsReplaceInLexicalOrderAndRulesAddUp) {
  const TemporaryDirectory dir;
  const auto file =
      dir.write("berth.toml", "mode = 'enforce'\n[sampling]\nhistory = 10\n[[workload]]\nmatch = 'a'\n");
  dir.write("berth.toml.d/20-late.toml", "[sampling]\nhistory = 30\n[[workload]]\nmatch = 'c'\n");
  dir.write("berth.toml.d/10-early.toml",
            "[sampling]\nhistory = 20\ninterval = 2\n[[workload]]\nmatch = 'b'\n");
  dir.write("berth.toml.d/90-note.txt", "not TOML at all");
  dir.write("berth.toml.d/.hidden.toml", "not TOML at all");
  dir.write("berth.toml.d/30-backup.toml~", "not TOML at all");
  const auto loaded = load(file);
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->mode, Mode::enforce);
  EXPECT_EQ(loaded->history, 30);
  EXPECT_DOUBLE_EQ(loaded->tick_s, 2);
  ASSERT_EQ(loaded->rules.size(), 3U);
  EXPECT_EQ(loaded->rules[0].match, "a");
  EXPECT_EQ(loaded->rules[1].match, "b");
  EXPECT_EQ(loaded->rules[2].match, "c");
  EXPECT_EQ(loaded->rules[2].origin, (dir.path() / "berth.toml.d/20-late.toml").string() + ":3");
}

TEST(Load, DropInsCountWithoutTheMainFile) {
  const TemporaryDirectory dir;
  dir.write("berth.toml.d/a.toml", "mode = 'enforce'\n");
  const auto loaded = load(dir.path() / "berth.toml");
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->mode, Mode::enforce);
}

TEST(Load, AnErrorInADropInNamesTheDropIn) {
  const TemporaryDirectory dir;
  const auto file = dir.write("berth.toml", "mode = 'enforce'\n");
  const auto drop_in = dir.write("berth.toml.d/a.toml", "\n\nmod = 'enforce'\n");
  EXPECT_EQ(error_of(file),
            drop_in.string() + ":3:1: unknown key \"mod\" at the top level; did you mean \"mode\"?");
}

TEST(Load, ADirectoryInAFilesPlaceIsRefused) {
  const TemporaryDirectory dir;
  fs::create_directories(dir.path() / "berth.toml");
  EXPECT_EQ(error_of(dir.path() / "berth.toml"), (dir.path() / "berth.toml").string() + ": is a directory");
  const auto file = dir.write("other.toml", "");
  fs::create_directories(dir.path() / "other.toml.d" / "x.toml");
  EXPECT_EQ(error_of(file), (dir.path() / "other.toml.d/x.toml").string() + ": is a directory");
}

TEST(Load, ADanglingSymlinkIsRefused) {
  const TemporaryDirectory dir;
  const auto file = dir.write("berth.toml", "");
  fs::create_directories(dir.path() / "berth.toml.d");
  fs::create_symlink("nowhere", dir.path() / "berth.toml.d" / "x.toml");
  EXPECT_EQ(error_of(file),
            (dir.path() / "berth.toml.d/x.toml").string() + ": symbolic link to a file that does not exist");
  fs::create_symlink("nowhere", dir.path() / "main.toml");
  EXPECT_NE(error_of(dir.path() / "main.toml"), "");
}

TEST(Load, ALinkToTheNullDeviceIsAnEmptyFile) {
  const TemporaryDirectory dir;
  const auto file = dir.write("berth.toml", "mode = 'enforce'\n");
  fs::create_directories(dir.path() / "berth.toml.d");
  fs::create_symlink("/dev/null", dir.path() / "berth.toml.d" / "x.toml");
  const auto loaded = load(file);
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->mode, Mode::enforce);
}

TEST(Load, WhatIsNoFileIsRefusedWithoutWaiting) {
  const TemporaryDirectory dir;
  const auto fifo = dir.path() / "berth.toml";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(error_of(fifo), fifo.string() + ": is not a regular file");
  EXPECT_EQ(error_of("/dev/zero"), "/dev/zero: is not a regular file");
}

TEST(Load, AFileInPlaceOfTheDropInDirectoryIsRefused) {
  const TemporaryDirectory dir;
  const auto file = dir.write("berth.toml", "");
  dir.write("berth.toml.d", "");
  EXPECT_EQ(error_of(file), (dir.path() / "berth.toml.d").string() + ": Not a directory");
}

TEST(Load, AHugeFileIsRefused) {
  const TemporaryDirectory dir;
  const auto file = dir.write("berth.toml", "");
  fs::resize_file(file, 1ULL << 32U);  // sparse
  EXPECT_EQ(error_of(file), file.string() + ": larger than 1048576 bytes; is this a configuration file?");
}

TEST(Load, ALongListOfRulesIsRead) {
  const TemporaryDirectory dir;
  std::string text;
  for (int i = 0; i < 10000; ++i)
    text += "[[workload]]\nmatch = 'system.slice/web" + std::to_string(i) + "'\n";
  const auto loaded = load(dir.write("berth.toml", text));
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->rules.size(), 10000U);
}

TEST(Load, AnUnreadableFileIsRefused) {
  const TemporaryDirectory dir;
  const auto file = dir.write("berth.toml", "");
  ASSERT_EQ(::chmod(file.c_str(), 0), 0);
  // Root reads everything, so the test reads the file without root's rights.
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto loaded = load(file);
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind(), model::ErrorKind::permission);
  EXPECT_EQ(loaded.error().message(), file.string() + ": Permission denied");
}

}  // namespace
}  // namespace berth::config
