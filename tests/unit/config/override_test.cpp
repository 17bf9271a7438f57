// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::config {
namespace {

std::string error_of(const std::string& assignment) {
  Settings settings;
  const auto done = override_setting(settings, assignment);
  return done ? "" : done.error().message();
}

TEST(Override, TakesTomlValuesAndBareWords) {
  Settings settings;
  for (const char* assignment : {"mode=enforce", "sampling.interval=250ms", "sampling.history = 10",
                                 "interference.weighting=\"request\"", "interference.shared_domain='socket'",
                                 "interference.reserved_cpus=0-1,4", "interference.be_avoid_siblings=true",
                                 "interference.default_model.k1=0.9", "safety.repin_cooldown=0"}) {
    const auto done = override_setting(settings, assignment);
    EXPECT_TRUE(done) << assignment << ": " << (done ? "" : done.error().message());
  }
  EXPECT_EQ(settings.mode, Mode::enforce);
  EXPECT_DOUBLE_EQ(settings.tick_s, 0.25);
  EXPECT_EQ(settings.history, 10);
  EXPECT_EQ(settings.policies.interference.weighting, policies::Weighting::request);
  EXPECT_EQ(settings.policies.interference.shared_domain, model::DomainKind::socket);
  EXPECT_EQ(settings.policies.interference.reserved_cpus, (model::CpuSet{0, 1, 4}));
  EXPECT_TRUE(settings.policies.interference.be_avoid_siblings);
  EXPECT_DOUBLE_EQ(settings.policies.interference.default_model.k1, 0.9);
  EXPECT_DOUBLE_EQ(settings.policies.safety.repin_cooldown_s, 0);
}

TEST(Override, TakesFormerNames) {
  Settings settings;
  ASSERT_TRUE(override_setting(settings, "spark.z=1"));
  EXPECT_EQ(settings.policies.eviction.z, 1);
  ASSERT_EQ(settings.warnings.size(), 1U);
  EXPECT_EQ(settings.warnings.front(),
            "spark.z is the former name of eviction.z; the next release refuses it");
}

TEST(Override, ASingleCpuNeedsNoQuotes) {
  Settings settings;
  ASSERT_TRUE(override_setting(settings, "interference.reserved_cpus=0"));
  EXPECT_EQ(settings.policies.interference.reserved_cpus, (model::CpuSet{0}));
  ASSERT_TRUE(override_setting(settings, "interference.reserved_cpus="));
  EXPECT_TRUE(settings.policies.interference.reserved_cpus.empty());
}

TEST(Override, RefusesWhatIsNoAssignment) {
  EXPECT_NE(error_of(""), "");
  EXPECT_NE(error_of("mode"), "");
  EXPECT_NE(error_of("=enforce"), "");
  EXPECT_EQ(error_of("verbose"),
            "\"verbose\" is not of the form KEY=VALUE, such as interference.weighting=request");
}

TEST(Override, SuggestsNearbySettings) {
  EXPECT_EQ(error_of("interference.serach=window"),
            "unknown setting \"interference.serach\"; did you mean \"interference.search\"?");
  EXPECT_EQ(error_of("interference.default_model={k1=1}"),
            "unknown setting \"interference.default_model\"; name one of its members, such as "
            "interference.default_model.b0");
  EXPECT_EQ(error_of("workload.match=a"),
            "unknown setting \"workload.match\"; [[workload]] rules are given in a file");
}

TEST(Override, ARefusedValueLeavesTheSettingAlone) {
  Settings settings;
  EXPECT_FALSE(override_setting(settings, "interference.window_step=0"));
  EXPECT_FALSE(override_setting(settings, "interference.window_step=two"));
  EXPECT_FALSE(override_setting(settings, "interference.window_step="));
  EXPECT_FALSE(override_setting(settings, "safety.min_change=nan"));
  EXPECT_EQ(settings.policies.interference.window_step, 2);
  EXPECT_EQ(error_of("interference.window_step=0"),
            "interference.window_step wants an integer from 1 to 8192, got 0");
}

TEST(Override, AValueCannotSmuggleInMore) {
  Settings settings;
  EXPECT_FALSE(override_setting(settings, "sampling.history=60\nmode=\"enforce\""));
  EXPECT_FALSE(override_setting(settings, "sampling.history=60 # comment"));
  EXPECT_EQ(settings.mode, Mode::observe);
}

}  // namespace
}  // namespace berth::config
