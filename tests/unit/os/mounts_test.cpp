// SPDX-License-Identifier: Apache-2.0
#include "os/mounts.h"

#include "tests/temporary_directory.h"
#include "tests/unit/cgroup/fake_tree.h"

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

namespace berth::os {
namespace {

constexpr const char* kRoot = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n";

TEST(Mounts, ALineTellsRootPointAndType) {
  const auto mount =
      parse_mount("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->id, 36U);
  EXPECT_EQ(mount->root, "/mnt1");
  EXPECT_EQ(mount->point, "/mnt2");
  EXPECT_EQ(mount->type, "ext3");
}

TEST(Mounts, NamesAreUnescaped) {
  EXPECT_EQ(parse_mount(R"(30 22 0:5 / /a\040b\134c\011d rw - tmpfs tmpfs rw)")->point, "/a b\\c\td");
  EXPECT_EQ(parse_mount(R"(30 22 0:5 / /a\08 rw - tmpfs tmpfs rw)")->point, "/a\\08");
}

TEST(Mounts, AnEmptySourceIsASource) {
  const auto mount = parse_mount("30 22 0:5 / /srv/alice rw - fuse  rw,user_id=1000");
  ASSERT_TRUE(mount);
  EXPECT_EQ(mount->type, "fuse");
}

// The kernel escapes blanks, tabs and line breaks, and no other white space.
TEST(Mounts, OtherWhiteSpaceSeparatesNothing) {
  EXPECT_EQ(parse_mount("30 22 0:5 / /srv/alice rw - fuse \r rw,user_id=1000")->type, "fuse");
  const auto forged = parse_mount("30 22 0:5 / /srv/x\ra\r-\rext4\rs\ro rw - fuse alice rw");
  ASSERT_TRUE(forged);
  EXPECT_EQ(forged->type, "fuse");
}

TEST(Mounts, ATableWithAnotherLineIsIncomplete) {
  const cgroup::test::FakeTree tree;
  tree.write_proc("self/mountinfo", std::string(kRoot) + "30 22 0:5 / /x rw\n");
  const auto table = read_mounts(tree.proc());
  ASSERT_TRUE(table);
  EXPECT_FALSE(table->complete);
  EXPECT_EQ(table->mounts.size(), 1U);
  EXPECT_FALSE(read_mounts(tree.proc() / "none"));
}

TEST(Mounts, APathLiesOnTheInnermostMountAndTheLastOfTwo) {
  const cgroup::test::FakeTree tree;
  tree.write_proc("self/mountinfo", std::string(kRoot) +
                                        "30 22 0:5 / /srv rw - xfs /dev/sdb rw\n"
                                        "31 30 0:6 / /srv rw - nfs server:/ rw\n");
  const auto table = read_mounts(tree.proc());
  ASSERT_TRUE(table && table->complete);
  EXPECT_EQ(mount_of(*table, "/srv/a")->type, "nfs");
  EXPECT_EQ(mount_of(*table, "/srv")->type, "nfs");
  EXPECT_EQ(mount_of(*table, "/srvx")->type, "ext4");
  EXPECT_EQ(mount_of({}, "/srv"), nullptr);
}

std::uint64_t id_at(const std::filesystem::path& path) {
  struct statx status {};
  return statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &status) == 0 ? status.stx_mnt_id : 0;
}

// The kernel gives the number of a mount that is gone to the next one.
TEST(MountTypes, AnotherMountWithAnOldNumberHasItsOwnType) {
  const berth::test::TemporaryDirectory directory;
  const auto& point = directory.path();
  std::vector<std::string> seen;
  std::thread([&] {
    if (unshare(CLONE_NEWNS) != 0) return;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    MountTypes types;
    for (const char* type : {"tmpfs", "ramfs", "proc"}) {
      if (mount("none", point.c_str(), type, 0, nullptr) != 0) return;
      const auto id = id_at(point);
      seen.push_back(types.type_of(id));
      seen.push_back(types.type_of(id));  // from memory
      umount(point.c_str());
      seen.push_back(types.type_of(id));
    }
  }).join();
  if (seen.empty()) GTEST_SKIP() << "this machine does not let even root mount";
  EXPECT_EQ(seen, (std::vector<std::string>{"tmpfs", "tmpfs", "", "ramfs", "ramfs", "", "proc", "proc", ""}));
}

}  // namespace
}  // namespace berth::os
