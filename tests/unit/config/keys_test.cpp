// SPDX-License-Identifier: Apache-2.0
// The table of keys agrees with the manual.
#include "config/config.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace berth::config {
namespace {

TEST(Keys, EveryDefaultIsAValueItsOwnKeyAccepts) {
  for (const auto& key : known_keys()) {
    Settings settings;
    ASSERT_FALSE(key.default_text.empty()) << key.name;
    const auto taken = override_setting(settings, key.name + "=" + key.default_text);
    EXPECT_TRUE(taken) << key.name << ": " << (taken ? "" : taken.error().message());
  }
}

TEST(Keys, EveryKeyIsAcceptedInADocument) {
  for (const auto& key : known_keys()) {
    const auto parsed = parse(key.name + " = " + key.default_text + "\n", "t");
    EXPECT_TRUE(parsed) << key.name << ": " << (parsed ? "" : parsed.error().message());
  }
}

TEST(Keys, AreUniqueAndOfAKnownType) {
  const std::set<std::string> types{"integer", "number",   "boolean", "string",
                                    "cpulist", "duration", "size",    "table"};
  std::set<std::string> names;
  for (const auto& key : known_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_TRUE(types.count(key.type)) << key.name << ": " << key.type;
  }
  names.clear();
  for (const auto& key : known_workload_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_TRUE(types.count(key.type)) << key.name << ": " << key.type;
  }
}

TEST(Keys, NameTheDefaultsOfTheProgram) {
  const auto text_of = [](const std::string& name) {
    for (const auto& key : known_keys()) {
      if (key.name == name) return key.default_text;
    }
    return std::string("no such key");
  };
  EXPECT_EQ(text_of("mode"), "\"observe\"");
  EXPECT_EQ(text_of("sampling.interval"), "\"1s\"");
  EXPECT_EQ(text_of("log.retention"), "\"1w\"");
  EXPECT_EQ(text_of("safety.be_quota_rise"), "0.1");
  EXPECT_EQ(text_of("interference.weighting"), "\"overlap\"");
  EXPECT_EQ(text_of("interference.reserved_cpus"), "\"\"");
  EXPECT_EQ(text_of("interference.reserved"), "\"strict\"");
  EXPECT_EQ(text_of("interference.interrupts"), "\"leave\"");
  EXPECT_EQ(text_of("interference.others"), "\"leave\"");
  EXPECT_EQ(text_of("interference.be_avoid_siblings"), "false");
}

TEST(Keys, ChangingOneChangesNoOther) {
  Settings settings;
  ASSERT_TRUE(override_setting(settings, "interference.window_step=7"));
  EXPECT_EQ(settings.policies.interference.window_step, 7);
  EXPECT_EQ(settings.policies.interference.be_min_cpus, Settings().policies.interference.be_min_cpus);
  EXPECT_EQ(settings.history, Settings().history);
}

}  // namespace
}  // namespace berth::config
