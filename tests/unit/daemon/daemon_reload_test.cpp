// SPDX-License-Identifier: Apache-2.0
// The effects of a reload of the configuration, and the state that it leaves.
#include "os/log.h"
#include "tests/unit/daemon/daemon_fixture.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using DaemonTest = test::DaemonFixture;
using nlohmann::json;

TEST_F(DaemonTest, ReloadTakesNewSettings) {
  load_node();
  start();
  tick();
  EXPECT_EQ(daemon->control().counts().latency_sensitive, 2U);
  node.configure("[sampling]\ninterval = \"3s\"\n[[workload]]\nmatch = \"web/*\"\nclass = \"best-effort\"\n");
  ASSERT_TRUE(daemon->reload());
  EXPECT_DOUBLE_EQ(daemon->senses().interval_s(), 3);
  tick();
  EXPECT_EQ(daemon->control().counts().latency_sensitive, 0U);
  EXPECT_EQ(daemon->control().counts().best_effort, 2U);
  EXPECT_TRUE(json::parse(daemon->control().status_json())["config"]["error"].is_null());
}

TEST_F(DaemonTest, ReloadThatFailsKeepsTheOldSettings) {
  load_node();
  start();
  node.configure("mode = \"enforce\"\n[sampling]\nintervall = \"3s\"\n");
  const auto reloaded = daemon->reload();
  ASSERT_FALSE(reloaded);
  EXPECT_EQ(reloaded.error().kind(), model::ErrorKind::invalid_input);
  EXPECT_DOUBLE_EQ(daemon->senses().interval_s(), 0.1);
  EXPECT_EQ(daemon->control().mode(), "observe");
  tick();
  EXPECT_EQ(daemon->control().counts().latency_sensitive, 2U);
  const std::string error = json::parse(daemon->control().status_json())["config"]["error"];
  EXPECT_NE(error.find("berth.toml:3:"), std::string::npos) << error;
  EXPECT_NE(daemon->status_line().find("rejected"), std::string::npos);

  configure("");
  ASSERT_TRUE(daemon->reload());
  EXPECT_TRUE(json::parse(daemon->control().status_json())["config"]["error"].is_null());
}

TEST_F(DaemonTest, AReloadSaysWhatHasNoEffectOnce) {
  load_node();
  start();
  const auto said = [this](const std::string& head) {
    node.configure(head);
    testing::internal::CaptureStderr();
    os::setup_log();
    EXPECT_TRUE(daemon->reload());
    return testing::internal::GetCapturedStderr();
  };
  const std::string idle = "interference.reserved = \"shared\"\n";
  EXPECT_NE(said(idle).find("interference.reserved"), std::string::npos);
  EXPECT_EQ(said(idle).find("interference.reserved"), std::string::npos) << "nothing new";
  EXPECT_EQ(said(idle + "eviction.z = 3\n").find("interference.reserved"), std::string::npos);
  EXPECT_EQ(said("").find("interference.reserved"), std::string::npos);
  EXPECT_NE(said(idle).find("interference.reserved"), std::string::npos) << "it is new again";
}

TEST_F(DaemonTest, ReloadFollowsTheFilesModeButNotOverAModeChosenMeanwhile) {
  load_node();
  start();
  ASSERT_TRUE(daemon->set_mode("enforce"));
  ASSERT_TRUE(daemon->reload());
  EXPECT_EQ(daemon->control().mode(), "enforce") << "the file says what it said before";
  configure("mode = \"enforce\"\n");
  ASSERT_TRUE(daemon->reload());
  configure("mode = \"observe\"\n");
  ASSERT_TRUE(daemon->reload());
  EXPECT_EQ(daemon->control().mode(), "observe");
}

TEST_F(DaemonTest, AReloadThatCannotEnforceSaysSoUntilItCan) {
  load_node();
  node.put("", "cgroup.controllers", "cpu memory");
  start();
  EXPECT_TRUE(daemon->reload());
  configure("mode = \"enforce\"\n");
  for (int i = 0; i < 2; ++i) {
    const auto reloaded = daemon->reload();
    ASSERT_FALSE(reloaded) << i;
    EXPECT_NE(reloaded.error().message().find("its mode was not taken over: cannot enforce: "),
              std::string::npos)
        << reloaded.error().message();
  }
  const auto status = json::parse(daemon->control().status_json());
  EXPECT_EQ(status["mode"], "observe");
  EXPECT_EQ(status["config"]["mode"], "enforce");
  EXPECT_TRUE(status["config"]["error"].is_null()) << "the file itself is right";
  EXPECT_NE(status["enforce_problem"].get<std::string>().find("cpuset"), std::string::npos);
  ASSERT_TRUE(daemon->set_mode("observe"));
  EXPECT_TRUE(daemon->reload()) << "somebody has decided otherwise since";
}

TEST_F(DaemonTest, AfterARestoreTheStatusTellsWhatTheFileAsksFor) {
  load_node();
  configure("mode = \"enforce\"\n");
  start();
  tick();
  ASSERT_TRUE(daemon->restore());
  const auto status = json::parse(daemon->control().status_json());
  EXPECT_EQ(status["mode"], "observe");
  EXPECT_EQ(status["config"]["mode"], "enforce");
  EXPECT_TRUE(status["enforce_problem"].is_null());
  EXPECT_TRUE(daemon->reload());
  EXPECT_EQ(daemon->control().mode(), "observe") << "the file says what it said before";
}

}  // namespace
}  // namespace berth::daemon
