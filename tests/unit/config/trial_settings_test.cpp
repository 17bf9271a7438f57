// SPDX-License-Identifier: Apache-2.0
// The settings that a trial compares.
#include "config/trial_settings.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::config {
namespace {

Settings base() {
  return *parse(
      "mode = \"enforce\"\n[interference]\nisolation = \"vcpus\"\n"
      "[[workload]]\nmatch = \"web/*\"\nclass = \"latency-sensitive\"\n",
      "berth.toml");
}

std::string refusal(const std::string& toml) {
  const auto settings = trial_settings(base(), toml, "b.toml");
  return settings ? "" : settings.error().message();
}

TEST(TrialSettings, ADocumentComesLast) {
  const auto settings = trial_settings(base(), "[interference]\nisolation = \"shared\"\n", "b.toml");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->mode, Mode::enforce);
  EXPECT_EQ(differences(base(), *settings),
            (std::vector<Difference>{{"interference.isolation", "\"vcpus\"", "\"shared\""}}));
}

TEST(TrialSettings, AnEmptyDocumentChangesNothing) {
  EXPECT_TRUE(differences(base(), *trial_settings(base(), "", "a.toml")).empty());
}

TEST(TrialSettings, AWholeConfigurationMayHaveTheRulesThatStand) {
  const auto settings = trial_settings(base(),
                                       "mode = \"observe\"\n[[workload]]\nmatch = \"web/*\"\n"
                                       "class = \"latency-sensitive\"\n",
                                       "b.toml");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->rules, base().rules);
  EXPECT_EQ(settings->mode, Mode::observe);
}

TEST(TrialSettings, AnotherRuleIsRefused) {
  EXPECT_NE(refusal("[[workload]]\nmatch = \"db/*\"\nclass = \"best-effort\"\n").find("b.toml:1"),
            std::string::npos);
}

TEST(TrialSettings, WhatIsMeasuredLearnedOrEndedStays) {
  for (const char* toml : {"[sampling]\ninterval = \"2s\"\n", "[log]\nlevel = \"debug\"\n",
                           "[metrics]\nlisten = \"127.0.0.1:9000\"\n", "[spark]\nleaf = \"never\"\n",
                           "[eviction]\nevict = true\nhorizon = \"99s\"\n",
                           "[oversell]\nevict_highest = true\n", "[interference]\nlearn = false\n"}) {
    EXPECT_NE(refusal(toml).find("b.toml: a trial does not change "), std::string::npos) << toml;
  }
  EXPECT_EQ(refusal("[sampling]\ninterval = \"1s\"\n"), "") << "it is that already";
}

TEST(TrialSettings, AFaultHasItsPlace) {
  EXPECT_NE(refusal("\n[interference]\nisolation = \"caged\"\n").find("b.toml:3:"), std::string::npos);
}

TEST(TrialSettings, ALongDocumentIsRefusedUnread) {
  EXPECT_NE(refusal(std::string(kMaxTrialBytes + 1, '#')).find("more than 65536"), std::string::npos);
  EXPECT_EQ(refusal(std::string(kMaxTrialBytes, '#')), "");
}

TEST(TrialSettings, EverySettingHasItsText) {
  Settings defaults;
  for (const Key& key : known_keys()) EXPECT_FALSE(key.default_text.empty()) << key.name;
  EXPECT_TRUE(differences(defaults, defaults).empty());
}

}  // namespace
}  // namespace berth::config
