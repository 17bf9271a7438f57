// SPDX-License-Identifier: Apache-2.0
#include "ebpf/walker.h"
#include "tests/temporary_directory.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

namespace berth::ebpf {
namespace {

namespace fs = std::filesystem;

std::uint64_t inode(const fs::path& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 ? std::uint64_t{about.st_ino} : 0;
}

TEST(TreeScan, FindsEveryDirectoryUnderItsParent) {
  const test::TemporaryDirectory directory;
  const fs::path& base = directory.path();
  fs::create_directories(base / "a/b/c");
  fs::create_directories(base / ".d");
  std::ofstream(base / "a/cgroup.procs") << 1;
  fs::create_directory_symlink("a", base / "link");
  const auto found = scan_tree(base);
  ASSERT_TRUE(found);
  std::map<std::uint64_t, std::uint64_t> parents;
  for (const ScannedGroup& group : *found) {
    EXPECT_TRUE(group.parent == 0 || parents.contains(group.parent)) << "a child before its parent";
    parents[group.id] = group.parent;
  }
  const std::map<std::uint64_t, std::uint64_t> expected{{inode(base), 0},
                                                        {inode(base / "a"), inode(base)},
                                                        {inode(base / "a/b"), inode(base / "a")},
                                                        {inode(base / "a/b/c"), inode(base / "a/b")},
                                                        {inode(base / ".d"), inode(base)}};
  EXPECT_EQ(parents, expected);
}

// In a mount namespace of its own, which one thread can have.
TEST(TreeScan, EntersNothingThatIsMountedBelowTheRoot) {
  const test::TemporaryDirectory directory;
  const fs::path& base = directory.path();
  fs::create_directories(base / "a");
  fs::create_directories(base / "user");
  const std::vector<std::uint64_t> expected{inode(base), inode(base / "a")};
  std::optional<std::vector<std::uint64_t>> ids;
  std::thread([&] {
    if (unshare(CLONE_NEWNS) != 0) return;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    if (mount("none", (base / "user").c_str(), "tmpfs", 0, "mode=0755,size=64k") != 0) return;
    fs::create_directory(base / "user/inside");
    const auto found = scan_tree(base);
    if (!found) return;
    ids.emplace();
    for (const ScannedGroup& group : *found) ids->push_back(group.id);
  }).join();
  if (!ids) GTEST_SKIP() << "mounting needs root";
  EXPECT_EQ(*ids, expected);
}

TEST(TreeScan, ARootThatIsNotThereIsNamed) {
  const auto found = scan_tree("/nonexistent/tree");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind(), model::ErrorKind::gone);
  EXPECT_NE(found.error().message().find("/nonexistent/tree"), std::string::npos);
}

}  // namespace
}  // namespace berth::ebpf
