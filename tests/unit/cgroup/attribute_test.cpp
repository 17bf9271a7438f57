// SPDX-License-Identifier: Apache-2.0
#include "cgroup/attribute.h"

#include "write_fixture.h"

#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

std::string canonical(Attribute attribute, const std::string& text) {
  const auto value = canonical_value(attribute, text);
  return value ? *value : "error: " + value.error().message();
}

bool refused(Attribute attribute, const std::string& text) {
  const auto value = canonical_value(attribute, text);
  return !value && value.error().kind() == model::ErrorKind::invalid_input;
}

TEST(AttributeValue, CpulistIsSortedAndJoined) {
  EXPECT_EQ(canonical(Attribute::cpus, " 3,1,2,0\n"), "0-3");
  EXPECT_EQ(canonical(Attribute::cpus, "\n"), "");
}

TEST(AttributeValue, CpulistThatIsNoneIsRefused) {
  for (const char* text : {"a", "3-1", "0-", "-1", "0,,1", "99999999999", "1 2"}) {
    EXPECT_TRUE(refused(Attribute::cpus, text)) << text;
  }
}

TEST(AttributeValue, QuotaGetsTheDefaultPeriod) {
  EXPECT_EQ(canonical(Attribute::cpu_quota, "max 100000\n"), "max 100000");
  EXPECT_EQ(canonical(Attribute::cpu_quota, "max"), "max 100000");
  EXPECT_EQ(canonical(Attribute::cpu_quota, "150000"), "150000 100000");
  EXPECT_EQ(canonical(Attribute::cpu_quota, "5000 20000"), "5000 20000");
}

TEST(AttributeValue, QuotaTheKernelWouldRefuseIsRefused) {
  for (const char* text :
       {"", "999 100000", "0", "-1 100000", "1000 999", "1000 1000001", "1000 1e5", "x 100000",
        "1000 1000 1000", "99999999999999999999 100000", "17592186044416 100000"}) {
    EXPECT_TRUE(refused(Attribute::cpu_quota, text)) << text;
  }
}

TEST(AttributeValue, MemoryIsRoundedDownToPagesAsTheKernelDoes) {
  EXPECT_EQ(canonical(Attribute::memory_high, "8192"), "8192");
  EXPECT_EQ(canonical(Attribute::memory_high, "12287\n"), "8192");
  EXPECT_EQ(canonical(Attribute::memory_high, "max\n"), "max");
  EXPECT_EQ(canonical(Attribute::memory_high, "18446744073709551615"), "max");
}

TEST(AttributeValue, MemoryThatIsNoNumberIsRefused) {
  for (const char* text : {"", "1G", "-1", "1.5", "nan", "99999999999999999999999"}) {
    EXPECT_TRUE(refused(Attribute::memory_high, text)) << text;
  }
}

TEST(AttributeValue, QuotaOfCores) {
  EXPECT_EQ(cpu_quota_value(std::nullopt), "max 100000");
  EXPECT_EQ(cpu_quota_value(1.5), "150000 100000");
  EXPECT_EQ(cpu_quota_value(0.001), "1000 100000") << "the kernel's minimum";
  EXPECT_EQ(cpu_quota_value(-1), "1000 100000");
  EXPECT_EQ(cpu_quota_value(1e300), "max 100000");
}

TEST(AttributeValue, QuotaOfCoresInAPeriodOfItsOwn) {
  EXPECT_EQ(cpu_quota_value(1.5, 20'000), "30000 20000");
  EXPECT_EQ(cpu_quota_value(0.01, 20'000), "1000 20000") << "the kernel's minimum";
  EXPECT_EQ(cpu_quota_value(std::nullopt, 20'000), "max 20000");
  EXPECT_EQ(parse_cpu_max("30000 20000\n"), (CpuMax{30'000, 20'000}));
  EXPECT_EQ(parse_cpu_max("max 20000"), (CpuMax{std::nullopt, 20'000}));
  EXPECT_FALSE(parse_cpu_max("30000 20"));
}

TEST(AttributeValue, CoresOfAQuota) {
  EXPECT_EQ(cores_of("max 100000\n"), std::nullopt);
  EXPECT_EQ(cores_of("250000 100000\n"), 2.5);
  EXPECT_EQ(cores_of("1000000000 1000\n"), 1e6);
  EXPECT_EQ(cores_of("1000000001 1000\n"), std::nullopt);
  for (const char* text : {"0 100000", "1000 0", "x 100000", ""}) EXPECT_EQ(cores_of(text), std::nullopt);
}

TEST(AttributeValue, NamesGoBothWays) {
  for (const Attribute attribute : {Attribute::cpus, Attribute::cpu_quota, Attribute::memory_high}) {
    EXPECT_EQ(attribute_of(control_file(attribute)), attribute);
  }
  EXPECT_EQ(attribute_of("cpuset.mems"), std::nullopt);
}

TEST(ReadAttribute, GroupWithoutTheControllerHasTheUnsetValue) {
  const ControlTree tree;
  std::filesystem::create_directories(tree.root() / "a");
  const FoundWorkload group = tree.found("a");
  EXPECT_EQ(read_attribute(*group.cgroup, Attribute::cpus), "");
  EXPECT_EQ(read_attribute(*group.cgroup, Attribute::cpu_quota), "max 100000");
  EXPECT_EQ(read_attribute(*group.cgroup, Attribute::memory_high), "max");
}

TEST(ReadAttribute, VanishedGroupIsGone) {
  const ControlTree tree;
  tree.make("a", "0-1");
  const FoundWorkload group = tree.found("a");
  tree.remove("a");
  const auto value = read_attribute(*group.cgroup, Attribute::cpus);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().kind(), model::ErrorKind::gone);
}

}  // namespace
}  // namespace berth::cgroup
