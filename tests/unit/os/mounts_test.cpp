// SPDX-License-Identifier: Apache-2.0
#include "os/mounts.h"

#include "tests/unit/cgroup/fake_tree.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::os {
namespace {

constexpr const char* kRoot = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n";

TEST(Mounts, ALineTellsRootPointAndType) {
  const auto mount =
      parse_mount("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue");
  ASSERT_TRUE(mount);
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

}  // namespace
}  // namespace berth::os
