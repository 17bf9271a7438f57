// SPDX-License-Identifier: Apache-2.0
// A trial puts settings in force for a while, and all its ends lead back.
#include "tests/unit/daemon/daemon_fixture.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using nlohmann::json;

using test::kEnforce;
using test::kObserve;
using test::kTrialCaller;

const TrialCaller kAnother{"1/:1.8", 124, 1000};

class TrialTest : public test::DaemonFixture {
 protected:
  TrialTest() { load_node(); }

  Control& control() { return daemon->control(); }
  std::string refusal(const std::string& a, const std::string& b) {
    const auto begun = control().begin_trial(kTrialCaller, a, b);
    return begun ? "" : begun.error().message();
  }
  // Begins with a tick, and a trial with that side; returns the pin before it.
  std::string start_trial(const char* side, double lease_s = 10) {
    start();
    tick();
    const std::string before = pin("web/a");
    begin_trial(side, lease_s);
    return before;
  }
  model::Result<void> use(const char* side, double lease_s = 10) {
    return control().use_trial_side(kTrialCaller.key, side, lease_s);
  }
  json status() { return json::parse(control().status_json()); }
  json trial() { return status()["trial"]; }
  // Ticks until the side has had its way.
  void ticks(int count = 5) {
    for (int i = 0; i < count; ++i) tick();
  }
  std::string pin(const std::string& path) { return node.cpus(path); }
  void expect_as_before(const std::string& pins) {
    EXPECT_TRUE(trial().is_null());
    EXPECT_EQ(control().mode(), "observe");
    EXPECT_EQ(pin("web/a"), pins);
    EXPECT_EQ(status()["undo_records"], 0);
    EXPECT_EQ(use("a").error().kind(), model::ErrorKind::gone);
  }
};

TEST_F(TrialTest, ASideIsInForceUntilTheOther) {
  start();
  ticks(2);
  const std::string before = pin("web/a");
  const auto begun = control().begin_trial(kTrialCaller, kObserve, kEnforce);
  ASSERT_TRUE(begun) << begun.error().message();
  EXPECT_EQ(json::parse(*begun)["differs"],
            json::parse(R"([{"key":"mode","a":"\"observe\"","b":"\"enforce\""}])"));
  ASSERT_TRUE(use("b"));
  ticks();
  EXPECT_EQ(control().mode(), "enforce");
  EXPECT_NE(pin("web/a"), before);
  EXPECT_EQ(trial()["side"], "b");
  EXPECT_EQ(trial()["pid"], 123);
  EXPECT_EQ(trial()["until"], now + 10 - 5);
  EXPECT_EQ(status()["config"]["mode"], "observe") << "the file says what it said";
  ASSERT_TRUE(use("a"));
  ticks();
  EXPECT_EQ(control().mode(), "observe");
  EXPECT_EQ(pin("web/a"), before);
  ASSERT_TRUE(control().end_trial(kTrialCaller.key, false));
  expect_as_before(before);
}

TEST_F(TrialTest, ALeaseThatRunsOutEndsIt) {
  const std::string before = start_trial("b", 10);
  ticks(9);
  EXPECT_EQ(control().mode(), "enforce");
  ticks(2);
  expect_as_before(before);
  EXPECT_NE(use("b").error().message().find("did not go on in time"), std::string::npos);
}

TEST_F(TrialTest, ATrialWithoutAFirstWindowEnds) {
  start();
  begin_trial();
  EXPECT_TRUE(trial()["side"].is_null());
  now = now + Trial::kFirstLease_s;
  tick();
  EXPECT_TRUE(trial().is_null());
}

TEST_F(TrialTest, ACallerThatLeavesEndsIt) {
  const std::string before = start_trial("b");
  ticks();
  control().caller_left(kAnother.key);
  EXPECT_FALSE(trial().is_null());
  control().caller_left(kTrialCaller.key);
  expect_as_before(before);
}

TEST_F(TrialTest, AReloadEndsItAndTheFileCounts) {
  start_trial("b");
  ticks();
  ASSERT_TRUE(control().reload());
  EXPECT_EQ(control().mode(), "observe");
  EXPECT_TRUE(trial().is_null());
  EXPECT_NE(use("a").error().message().find("reloaded"), std::string::npos);
}

TEST_F(TrialTest, AReloadThatFailsDoesNotEndIt) {
  start();
  begin_trial();
  node.configure("nonsense");
  EXPECT_FALSE(control().reload());
  EXPECT_FALSE(trial().is_null());
}

TEST_F(TrialTest, AModeOrARestoreOfSomebodyElseEndsIt) {
  start_trial("a");
  ASSERT_TRUE(control().set_mode("enforce"));
  EXPECT_TRUE(trial().is_null());
  EXPECT_EQ(control().mode(), "enforce");
  begin_trial("b");
  ASSERT_TRUE(control().restore());
  EXPECT_TRUE(trial().is_null());
  EXPECT_EQ(control().mode(), "observe");
}

TEST_F(TrialTest, TheModeThatStoodComesBackThoughTheFileHasAnother) {
  start();
  ASSERT_TRUE(control().set_mode("enforce"));
  ticks();
  const std::string pinned = pin("web/a");
  begin_trial("a", 10, kObserve, "");
  ticks();
  EXPECT_EQ(control().mode(), "observe");
  ASSERT_TRUE(control().end_trial(kTrialCaller.key, false));
  EXPECT_EQ(control().mode(), "enforce");
  ticks();
  EXPECT_EQ(pin("web/a"), pinned);
}

TEST_F(TrialTest, ASecondTrialIsRefused) {
  start();
  begin_trial();
  const auto second = control().begin_trial(kAnother, kObserve, kEnforce);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), model::ErrorKind::refused);
  EXPECT_NE(second.error().message().find("process 123 of user 0"), std::string::npos);
  EXPECT_EQ(control().use_trial_side(kAnother.key, "a", 10).error().kind(), model::ErrorKind::gone);
  EXPECT_EQ(control().end_trial(kAnother.key, true).error().kind(), model::ErrorKind::gone);
  EXPECT_EQ(trial()["pid"], 123);
}

TEST_F(TrialTest, KeptSettingsStayUntilTheNextReload) {
  start_trial("b");
  ASSERT_TRUE(control().end_trial(kTrialCaller.key, true));
  now = now + 100;
  ticks();
  EXPECT_EQ(control().mode(), "enforce");
  EXPECT_EQ(trial()["kept"], true);
  EXPECT_EQ(trial()["side"], "b");
  EXPECT_TRUE(trial()["until"].is_null());
  ASSERT_TRUE(control().reload());
  EXPECT_EQ(control().mode(), "observe");
  EXPECT_TRUE(trial().is_null());
}

TEST_F(TrialTest, AKeptModeThatIsChosenStaysOverAReload) {
  start_trial("b");
  ASSERT_TRUE(control().end_trial(kTrialCaller.key, true));
  ASSERT_TRUE(control().set_mode("enforce"));
  ASSERT_TRUE(control().reload());
  EXPECT_EQ(control().mode(), "enforce");
}

TEST_F(TrialTest, NothingIsPlacedByASideBeforeItsFirstTick) {
  configure(kEnforce);
  start();
  ticks();
  begin_trial("b", 10, "", "[safety]\nforeign_writer = \"reassert\"\n");
  node.add_group("web/c");
  daemon->take_changes();
  daemon->place();
  EXPECT_EQ(pin("web/c"), "");
  tick();
  EXPECT_NE(pin("web/c"), "");
}

TEST_F(TrialTest, OnlyASideThatReassertsTakesUpWhatAnotherWriterChanged) {
  configure(kEnforce);
  start();
  tick();
  tick();  // the pin is there
  node.put("web/a", "cpuset.cpus", "7");
  ticks(cgroup::Sampler::kSettingsPeriod);
  ASSERT_EQ(control().counts().left_alone, 1U);
  begin_trial("a", 10, "[interference]\nisolation = \"cores\"\n",
              "[safety]\nforeign_writer = \"reassert\"\n");
  tick();
  EXPECT_EQ(control().counts().left_alone, 1U);
  ASSERT_TRUE(use("b"));
  tick();
  EXPECT_EQ(control().counts().left_alone, 0U);
}

TEST_F(TrialTest, WhatCouldTellNothingIsRefused) {
  start();
  EXPECT_NE(refusal("", "").find("do not differ"), std::string::npos);
  EXPECT_NE(refusal("", kObserve).find("do not differ"), std::string::npos) << "it observes anyway";
  EXPECT_NE(refusal("", "[interference]\nisolation = \"cores\"\n").find("only observe"), std::string::npos);
  EXPECT_TRUE(trial().is_null());
}

TEST_F(TrialTest, SidesAreReadAsAReloadReadsThem) {
  start();
  EXPECT_NE(refusal("\nmode = \"enforced\"\n", kObserve).find("side a:2:"), std::string::npos);
  EXPECT_NE(refusal(kEnforce, "[[workload]]\nmatch = \"x\"\nclass = \"best-effort\"\n").find("side b:1"),
            std::string::npos);
  EXPECT_NE(refusal(kEnforce, std::string(config::kMaxTrialBytes + 1, ' ')).find("more than 65536"),
            std::string::npos);
  EXPECT_NE(refusal(kEnforce, "[sampling]\ninterval = \"9s\"\n").find("sampling.interval"),
            std::string::npos);
  EXPECT_TRUE(trial().is_null());
  EXPECT_EQ(control().mode(), "observe");
  EXPECT_DOUBLE_EQ(daemon->senses().interval_s(), 0.1);
}

TEST_F(TrialTest, AHostThatCannotEnforceSaysSoAtOnce) {
  node.put("", "cgroup.controllers", "cpu memory");
  start();
  EXPECT_NE(refusal(kObserve, kEnforce).find("cpuset"), std::string::npos);
  EXPECT_TRUE(trial().is_null());
}

TEST_F(TrialTest, AnotherSideOrLeaseIsRefusedWithoutEffect) {
  start();
  begin_trial();
  EXPECT_EQ(use("c").error().kind(), model::ErrorKind::invalid_input);
  EXPECT_EQ(use("b", 0).error().kind(), model::ErrorKind::invalid_input);
  EXPECT_EQ(use("b", 1e9).error().kind(), model::ErrorKind::invalid_input);
  EXPECT_EQ(control().mode(), "observe");
}

TEST_F(TrialTest, AStopPutsEverythingBack) {
  const std::string before = start_trial("b");
  ticks();
  daemon->stop();
  EXPECT_EQ(pin("web/a"), before);
}

}  // namespace
}  // namespace berth::daemon
