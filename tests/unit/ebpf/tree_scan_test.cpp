// SPDX-License-Identifier: Apache-2.0
#include "ebpf/tree_scan.h"

#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

namespace berth::ebpf {
namespace {

TEST(TreeScan, FindsEveryDirectoryUnderItsParent) {
  std::string root = (std::filesystem::temp_directory_path() / "berth-scan-XXXXXX").string();
  ASSERT_TRUE(mkdtemp(root.data()));
  const std::filesystem::path base(root);
  std::filesystem::create_directories(base / "a/b/c");
  std::filesystem::create_directories(base / "d");
  std::ofstream(base / "a/cgroup.procs") << 1;
  std::filesystem::create_directory_symlink("a", base / "link");
  const auto inode = [&](const char* path) {
    struct stat about {};
    stat((base / path).c_str(), &about);
    return std::uint64_t{about.st_ino};
  };
  const auto found = scan_tree(base);
  ASSERT_TRUE(found);
  std::map<std::uint64_t, std::uint64_t> parents;
  for (const ScannedGroup& group : *found) {
    EXPECT_TRUE(group.parent == 0 || parents.contains(group.parent)) << "a child before its parent";
    parents[group.id] = group.parent;
  }
  const std::map<std::uint64_t, std::uint64_t> expected{{inode("."), 0},
                                                        {inode("a"), inode(".")},
                                                        {inode("a/b"), inode("a")},
                                                        {inode("a/b/c"), inode("a/b")},
                                                        {inode("d"), inode(".")}};
  EXPECT_EQ(parents, expected);
  std::filesystem::remove_all(base);
}

TEST(TreeScan, ARootThatIsNotThereIsNamed) {
  const auto found = scan_tree("/nonexistent/tree");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind(), model::ErrorKind::gone);
  EXPECT_NE(found.error().message().find("/nonexistent/tree"), std::string::npos);
}

}  // namespace
}  // namespace berth::ebpf
