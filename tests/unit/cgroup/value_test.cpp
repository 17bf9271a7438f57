// SPDX-License-Identifier: Apache-2.0
#include "values.h"
#include "write_fixture.h"

#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

std::string canonical(Attribute attribute, const std::string& text) {
  return berth::cgroup::text(parse_value(attribute, text));
}

bool refused(Attribute attribute, const std::string& text) {
  const auto value = parse_value(attribute, text);
  return !value && value.error().kind() == model::ErrorKind::invalid_input;
}

TEST(Value, CpulistIsSortedAndJoined) {
  EXPECT_EQ(canonical(Attribute::cpus, " 3,1,2,0\n"), "0-3");
  EXPECT_EQ(canonical(Attribute::cpus, "\n"), "");
}

TEST(Value, CpulistThatIsNoneIsRefused) {
  for (const char* text : {"a", "3-1", "0-", "-1", "0,,1", "99999999999", "1 2"}) {
    EXPECT_TRUE(refused(Attribute::cpus, text)) << text;
  }
}

TEST(Value, QuotaGetsTheDefaultPeriod) {
  EXPECT_EQ(canonical(Attribute::cpu_quota, "max 100000\n"), "max 100000");
  EXPECT_EQ(canonical(Attribute::cpu_quota, "max"), "max 100000");
  EXPECT_EQ(canonical(Attribute::cpu_quota, "150000"), "150000 100000");
  EXPECT_EQ(canonical(Attribute::cpu_quota, "5000 20000"), "5000 20000");
}

TEST(Value, QuotaTheKernelWouldRefuseIsRefused) {
  for (const char* text :
       {"", "999 100000", "0", "-1 100000", "1000 999", "1000 1000001", "1000 1e5", "x 100000",
        "1000 1000 1000", "99999999999999999999 100000", "17592186044416 100000"}) {
    EXPECT_TRUE(refused(Attribute::cpu_quota, text)) << text;
  }
}

TEST(Value, MemoryIsRoundedDownToPagesAsTheKernelDoes) {
  EXPECT_EQ(canonical(Attribute::memory_high, "8192"), "8192");
  EXPECT_EQ(canonical(Attribute::memory_high, "12287\n"), "8192");
  EXPECT_EQ(canonical(Attribute::memory_high, "max\n"), "max");
  EXPECT_EQ(canonical(Attribute::memory_high, "18446744073709551615"), "max");
}

TEST(Value, MemoryThatIsNoNumberIsRefused) {
  for (const char* text : {"", "1G", "-1", "1.5", "nan", "99999999999999999999999"}) {
    EXPECT_TRUE(refused(Attribute::memory_high, text)) << text;
  }
}

TEST(Value, IdlePriorityHasTheWeightThatGoesWithIt) {
  EXPECT_EQ(canonical(Attribute::cpu_idle, "1\n"), "1");
  EXPECT_EQ(canonical(Attribute::cpu_idle, "0\n"), "0");
  EXPECT_EQ(canonical(Attribute::cpu_idle, "0 100"), "0") << "what the kernel makes of a write of 0";
  EXPECT_EQ(canonical(Attribute::cpu_idle, "0 10000"), "0 10000");
  EXPECT_EQ(canonical(Attribute::cpu_burst, "50000\n"), "50000");
  for (const char* text : {"", "max", "-1", "1 100000", "99999999999999999999"})
    EXPECT_TRUE(refused(Attribute::cpu_burst, text)) << text;
  for (const char* text : {"", "2", "-1", "1 100", "0 0", "0 10001", "0 x", "idle"}) {
    EXPECT_TRUE(refused(Attribute::cpu_idle, text)) << text;
  }
}

TEST(Value, IdlePriorityIsReadWithTheWeightUnlessItIsIdle) {
  const ControlTree tree;
  tree.make("a");
  const auto read = [&] {
    return berth::cgroup::text(read_value(*tree.found("a").cgroup, Attribute::cpu_idle));
  };
  EXPECT_EQ(read(), "0");
  tree.put("a", "cpu.weight", "250");
  EXPECT_EQ(read(), "0 250");
  tree.put("a", "cpu.idle", "1");
  EXPECT_EQ(read(), "1");
  std::filesystem::remove(tree.root() / "a/cpu.idle");
  EXPECT_EQ(read(), "0 250") << "an older kernel";
  std::filesystem::remove(tree.root() / "a/cpu.weight");
  EXPECT_EQ(read(), "0") << "no controller";
}

TEST(Value, QuotaOfCores) {
  EXPECT_EQ(to_text(cpu_max(std::nullopt)), "max 100000");
  EXPECT_EQ(to_text(cpu_max(1.5)), "150000 100000");
  EXPECT_EQ(to_text(cpu_max(0.001)), "1000 100000") << "the kernel's minimum";
  EXPECT_EQ(to_text(cpu_max(-1)), "1000 100000");
  EXPECT_EQ(to_text(cpu_max(1e300)), "max 100000");
}

TEST(Value, QuotaOfCoresInAPeriodOfItsOwn) {
  EXPECT_EQ(to_text(cpu_max(1.5, 20'000)), "30000 20000");
  EXPECT_EQ(to_text(cpu_max(0.01, 20'000)), "1000 20000") << "the kernel's minimum";
  EXPECT_EQ(to_text(cpu_max(std::nullopt, 20'000)), "max 20000");
  EXPECT_EQ(parse_cpu_max("30000 20000\n"), (CpuMax{30'000, 20'000}));
  EXPECT_EQ(parse_cpu_max("max 20000"), (CpuMax{std::nullopt, 20'000}));
  EXPECT_FALSE(parse_cpu_max("30000 20"));
}

TEST(Value, CoresOfAQuota) {
  EXPECT_EQ(cores_of(parse_cpu_max("max 100000\n").value()), std::nullopt);
  EXPECT_EQ(cores_of(parse_cpu_max("250000 100000\n").value()), 2.5);
  EXPECT_EQ(cores_of(parse_cpu_max("1000000000 1000\n").value()), 1e6);
  EXPECT_EQ(cores_of(parse_cpu_max("1000000001 1000\n").value()), std::nullopt);
}

TEST(Value, BytesOfALimit) {
  EXPECT_EQ(bytes_of(memory_high(std::nullopt)), std::nullopt);
  EXPECT_EQ(bytes_of(memory_high(12287)), 8192U);
  EXPECT_EQ(bytes_of(memory_high(std::uint64_t{1} << 60)), std::nullopt) << "more than any host has";
}

TEST(ReadValue, GroupWithoutTheControllerHasTheUnsetValue) {
  const ControlTree tree;
  std::filesystem::create_directories(tree.root() / "a");
  const FoundWorkload group = tree.found("a");
  EXPECT_EQ(text(read_value(*group.cgroup, Attribute::cpus)), "");
  EXPECT_EQ(text(read_value(*group.cgroup, Attribute::cpu_quota)), "max 100000");
  EXPECT_EQ(text(read_value(*group.cgroup, Attribute::memory_high)), "max");
}

TEST(ReadValue, VanishedGroupIsGone) {
  const ControlTree tree;
  tree.make("a", "0-1");
  const FoundWorkload group = tree.found("a");
  tree.remove("a");
  const auto value = read_value(*group.cgroup, Attribute::cpus);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().kind(), model::ErrorKind::gone);
}

}  // namespace
}  // namespace berth::cgroup
