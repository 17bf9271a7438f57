// SPDX-License-Identifier: Apache-2.0
#include "cgroup/systemd_owner_bus.h"
#include "values.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

TEST(UnitSettingText, GoesBothWaysWithoutLoss) {
  for (const auto& [attribute, said] :
       {std::pair(Attribute::cpus, "0-3,8191"), std::pair(Attribute::cpus, ""),
        std::pair(Attribute::cpu_quota, "max 100000"), std::pair(Attribute::cpu_quota, "5000 20000"),
        std::pair(Attribute::memory_high, "max"), std::pair(Attribute::memory_high, "8192"),
        std::pair(Attribute::memory_nodes, ""), std::pair(Attribute::memory_nodes, "0,3-4"),
        std::pair(Attribute::cpu_idle, "0"), std::pair(Attribute::cpu_idle, "1"),
        std::pair(Attribute::cpu_idle, "0 300")}) {
    const UnitSetting setting = setting_of(value(attribute, said));
    EXPECT_EQ(parse_setting(attribute, setting_text(attribute, setting)), setting) << said;
    EXPECT_EQ(value_of(attribute, setting), value(attribute, said));
  }
  EXPECT_FALSE(parse_setting(Attribute::cpu_quota, "5"));
}

TEST(UnitSettingText, CpuBytesAreLittleEndianBits) {
  EXPECT_EQ(cpu_bytes({0, 9}), (std::vector<std::uint8_t>{1, 2}));
  EXPECT_EQ(cpus_of_bytes({1, 2, 0, 0}), (model::CpuSet{0, 9}));
  EXPECT_TRUE(cpu_bytes({}).empty());
}

TEST(UnitSettingText, PercentsAreWholeAndAboveTheKernelsMinimum) {
  const auto percents = [](const char* text) { return to_text(whole_percents(parse_cpu_max(text).value())); };
  EXPECT_EQ(percents("123456 100000"), "123000 100000");
  EXPECT_EQ(percents("1000 100000"), "1000 100000");
  EXPECT_EQ(percents("1000 20000"), "1000 20000");
  EXPECT_EQ(percents("1000 1000000"), "10000 1000000");
  EXPECT_EQ(percents("max 100000"), "max 100000");
}

}  // namespace
}  // namespace berth::cgroup
