// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/allowed_cpus.h"

#include "tests/unit/daemon/fake_node.h"

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using model::CpuSet;

const CpuSet kAll = CpuSet::range(0, 7);

Held pin(const CpuSet& cpus, const CpuSet& original = {}) { return make_held(1, cpus, original, 0); }

TEST(AllowedCpus, UnrestrictedIsNothing) {
  const test::FakeNode node;
  node.add_group("web/a");
  EXPECT_EQ(AllowedCpus(node.tree()).of("web/a", {}, {}, kAll), std::nullopt);
}

TEST(AllowedCpus, ItsOwnConfigurationRestricts) {
  const test::FakeNode node;
  node.add_group("web/a", "2-3");
  EXPECT_EQ(AllowedCpus(node.tree()).of("web/a", CpuSet{2, 3}, {}, kAll), (CpuSet{2, 3}));
}

TEST(AllowedCpus, AncestorsRestrict) {
  const test::FakeNode node;
  node.add_group("web/a/b");
  node.put("web", "cpuset.cpus.effective", "0-3");
  node.put("web/a", "cpuset.cpus.effective", "0-3");
  AllowedCpus allowed(node.tree());
  EXPECT_EQ(allowed.of("web/a/b", {}, {}, kAll), CpuSet::range(0, 3));
  EXPECT_EQ(allowed.of("web/a/b", CpuSet{3, 4}, {}, kAll), CpuSet{3});
  // The kernel falls back to the parent's set where nothing is left.
  EXPECT_EQ(allowed.of("web/a/b", CpuSet{6, 7}, {}, kAll), CpuSet::range(0, 3));
}

TEST(AllowedCpus, PinsOfBerthsOwnDoNotRestrict) {
  const test::FakeNode node;
  node.add_group("web/a/b");
  node.put("web/a", "cpuset.cpus", "4");
  node.put("web/a", "cpuset.cpus.effective", "4");
  const HeldValues pins{{"web/a", pin({4})}};
  EXPECT_EQ(AllowedCpus(node.tree()).of("web/a/b", {}, pins, kAll), std::nullopt);
  const HeldValues within{{"web/a", pin({4}, CpuSet{4, 5})}};
  EXPECT_EQ(AllowedCpus(node.tree()).of("web/a/b", {}, within, kAll), (CpuSet{4, 5}));
}

TEST(AllowedCpus, BelowAPinConfiguredSetsCount) {
  const test::FakeNode node;
  node.add_group("web/a/b/c");
  node.put("web/a", "cpuset.cpus.effective", "4");
  node.put("web/a/b", "cpuset.cpus", "1-2");
  node.put("web/a/b", "cpuset.cpus.effective", "4");
  const HeldValues pins{{"web/a", pin({4})}};
  EXPECT_EQ(AllowedCpus(node.tree()).of("web/a/b/c", {}, pins, kAll), (CpuSet{1, 2}));
}

TEST(AllowedCpus, AGroupWithoutTheControllerIsWhereItsParentIs) {
  const test::FakeNode node;
  node.add_group("web/a/b");
  std::filesystem::remove(node.tree() / "web/a/cpuset.cpus");
  std::filesystem::remove(node.tree() / "web/a/cpuset.cpus.effective");
  node.put("web", "cpuset.cpus.effective", "0-1");
  EXPECT_EQ(AllowedCpus(node.tree()).of("web/a/b", {}, {}, kAll), (CpuSet{0, 1}));
}

TEST(AllowedCpus, SeesChangesAfterARefresh) {
  const test::FakeNode node;
  node.add_group("web/a");
  AllowedCpus allowed(node.tree());
  EXPECT_EQ(allowed.of("web/a", {}, {}, kAll), std::nullopt);
  node.put("web", "cpuset.cpus.effective", "5");
  allowed.refresh();
  EXPECT_EQ(allowed.of("web/a", {}, {}, kAll), CpuSet{5});
}

}  // namespace
}  // namespace berth::daemon
