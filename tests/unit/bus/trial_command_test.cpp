// SPDX-License-Identifier: Apache-2.0
// berthctl trial against the real service, and a daemon that only notes what it is asked for.
#include "../cli/program.h"
#include "fixture.h"
#include "tests/paths.h"
#include "tests/temporary_directory.h"

#include <algorithm>
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace berth::test {

using nlohmann::json;
using testing::HasSubstr;

class TrialCommand : public BusServiceTest {
 protected:
  void SetUp() override {
    BusServiceTest::SetUp();
    directory_.write("a.toml", "mode = \"observe\"\n");
    directory_.write("b.toml", "mode = \"enforce\"\n");
  }
  // The ticks of the fake daemon are 50 ms apart, so these are the shortest windows that there are.
  Ran trial(const std::string& options) {
    const std::string command = std::string(BERTHCTL) + " trial --a a.toml --b b.toml " + options;
    return with_client([command, directory = directory_.path().string()] {
      return run_shell("cd " + directory + " && " + command);
    });
  }

  // Sends it to berthctl in its first window.
  void signal_in_a_window(int signal) {
    control_.on_side = [this, signal](const std::string&) { kill(control_.trials[0].caller.pid, signal); };
  }

  TemporaryDirectory directory_;
};

TEST_F(TrialCommand, LeadsATrialToItsEnd) {
  const Ran ran = trial("--for 5600ms --window 400ms --metric 'echo 5' --seed 3 --keep metric --json");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("14 windows of 0.4 s"));
  ASSERT_EQ(control_.trials.size(), 1U);
  EXPECT_EQ(control_.trials[0].b, "mode = \"enforce\"\n");
  ASSERT_EQ(control_.sides.size(), 15U) << "the last side stays while the two are compared";
  EXPECT_EQ(control_.sides[14].first, control_.sides[13].first);
  EXPECT_EQ(std::count_if(control_.sides.begin(), control_.sides.end() - 1,
                          [](const auto& it) { return it.first == "a"; }),
            7);
  EXPECT_EQ(control_.kept, std::vector<bool>{false}) << "no difference is shown";
  const json document = json::parse(ran.out);
  EXPECT_EQ(document["schema"], "berth.trial/1");
  EXPECT_EQ(document["complete"], true);
  EXPECT_EQ(document["seed"], 3);
  EXPECT_EQ(document["figures"][0]["figure"], "metric");
  EXPECT_EQ(document["figures"][0]["pairs"], 7);
  EXPECT_THAT(document["not_kept"].get<std::string>(), HasSubstr("no difference is shown in metric"));
}

TEST_F(TrialCommand, KeepsTheSideThatIsBetter) {
  control_.on_side = [this](const std::string& side) { directory_.write("wait", side == "a" ? "7" : "3"); };
  const Ran ran = trial("--for 5600ms --window 400ms --metric 'cat wait' --keep metric");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("a difference: b is better"));
  EXPECT_THAT(ran.out, HasSubstr("The settings of b stay in force"));
  ASSERT_EQ(control_.sides.size(), 16U);
  EXPECT_EQ(control_.sides.back().first, "b");
  EXPECT_EQ(control_.kept, std::vector<bool>{true});
}

TEST_F(TrialCommand, CtrlCEndsItWithTheResultSoFar) {
  signal_in_a_window(SIGINT);
  const Ran ran = trial("--for 1h --window 60s --metric 'echo 5' --json");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(control_.kept, std::vector<bool>{false});
  const json document = json::parse(ran.out);
  EXPECT_EQ(document["complete"], false);
  EXPECT_EQ(document["ended"], "a signal ended it");
}

TEST_F(TrialCommand, KilledItLeavesTheBus) {
  signal_in_a_window(SIGKILL);
  trial("--for 1h --window 60s --metric 'echo 5'");
  ASSERT_EQ(control_.trials.size(), 1U);
  serve_until([this] { return !control_.callers_left.empty(); });
  EXPECT_EQ(control_.callers_left[0], control_.trials[0].caller.key);
}

TEST_F(TrialCommand, ACommandThatPrintsNoNumberEndsIt) {
  const Ran ran = trial("--for 5600ms --window 400ms --metric 'echo five'");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("printed \"five"));
  EXPECT_EQ(control_.sides.size(), 1U);
  EXPECT_EQ(control_.kept, std::vector<bool>{false});
}

TEST_F(TrialCommand, WhatCouldTellNothingBeginsNothing) {
  EXPECT_THAT(trial("--for 1h").err, HasSubstr("no workload runs that berth knows"));
  EXPECT_THAT(trial("--for 1min --window 20s").err, HasSubstr("--for 280 s"));
  EXPECT_THAT(trial("--for 1h --keep latency").err, HasSubstr("runq-p99"));
  directory_.write("b.toml", "mode = \"enforced\"\n");
  EXPECT_THAT(trial("--for 1h").err, HasSubstr("b.toml:1:"));
  EXPECT_TRUE(control_.trials.empty());
}

}  // namespace berth::test
