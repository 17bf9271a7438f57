// SPDX-License-Identifier: Apache-2.0
// berthctl backtest on recorded memory, and on files that are none.
#include "program.h"
#include "tests/paths.h"
#include "tests/temporary_directory.h"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::test {

namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string recording(const char* name) { return std::string(BERTH_MEMORY) + "/" + name + ".csv"; }

class Backtest : public testing::Test {
 protected:
  std::string file(const std::string& text) const { return directory_.write("trace.csv", text).string(); }

  static void expect_complaint(const std::string& arguments, const std::string& about) {
    const Ran ran = run_shell("berthctl backtest " + arguments);
    EXPECT_EQ(ran.exit, 2) << arguments;
    EXPECT_EQ(lines_of(ran.err), 1) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(about)) << arguments;
    EXPECT_EQ(ran.out, "");
  }

  TemporaryDirectory directory_;
};

}  // namespace

TEST_F(Backtest, JudgesEveryMethodOnARecording) {
  const std::string command =
      "berthctl backtest memory " + recording("jvm") + " --capacity 300M --horizon 10s";
  const Ran text = run_shell(command);
  EXPECT_EQ(text.exit, 0) << text.err;
  for (const char* word : {"METHOD", "CROSSINGS", "MISSED", "SUDDEN", "NEEDLESS", "learned", "published",
                           "last value", "straight line", "line 285.0 MiB (300.0 MiB less 15.0 MiB reserve)"})
    EXPECT_THAT(text.out, HasSubstr(word));
  const json document = json::parse(run_shell(command + " --json").out);
  EXPECT_EQ(document.at("schema"), "berth.backtest/1");
  EXPECT_EQ(document.at("capacity_bytes"), 300 << 20);
  EXPECT_EQ(document.at("reserve_bytes"), 15 << 20);
  EXPECT_EQ(document.at("horizon"), 10);
  EXPECT_EQ(document.at("readings"), 300);
  ASSERT_EQ(document.at("methods").size(), 4U);
  for (const json& method : document.at("methods")) {
    EXPECT_EQ(method.at("crossings"), document.at("methods")[0].at("crossings"));
    EXPECT_GT(method.at("crossings"), 0);
    EXPECT_LE(method.at("missed").at("events").get<int>() + method.at("sudden").at("events").get<int>(),
              method.at("crossings").get<int>());
  }
  // The last value is above the line at the crossing only.
  const json& last = document.at("methods")[2];
  EXPECT_EQ(last.at("method"), "last value");
  EXPECT_EQ(last.at("missed").at("events").get<int>() + last.at("sudden").at("events").get<int>(),
            last.at("crossings").get<int>());
  EXPECT_EQ(last.at("needless").at("events"), 0);
}

TEST_F(Backtest, FindsNoFaultWhereThereIsRoom) {
  for (const char* name : {"jvm", "node", "python"}) {
    const json document =
        json::parse(run_shell("berthctl backtest memory " + recording(name) + " --capacity 64G --json").out);
    for (const json& method : document.at("methods")) {
      EXPECT_EQ(method.at("crossings"), 0) << name;
      EXPECT_EQ(method.at("needless").at("events"), 0) << name;
    }
  }
}

TEST_F(Backtest, ReadsStandardInput) {
  const std::string options = " --capacity 300M --reserve 0 --json";
  const Ran piped = run_shell("berthctl backtest memory -" + options + " < " + recording("node"));
  EXPECT_EQ(piped.exit, 0) << piped.err;
  EXPECT_EQ(piped.out, run_shell("berthctl backtest memory " + recording("node") + options).out);
}

TEST_F(Backtest, SaysWhatIsWrong) {
  const std::string good = recording("node") + " --capacity 1G";
  expect_complaint("cpu " + good, "there is memory only");
  expect_complaint("memory " + recording("node"), "--capacity is required");
  expect_complaint("memory " + recording("node") + " --capacity 1X", "--capacity: ");
  expect_complaint("memory " + good + " --reserve 1G", "not more than the reserve");
  expect_complaint("memory " + good + " --horizon 2h", "a horizon is from 1s to 1h");
  expect_complaint("memory " + good + " --horizon soon", "--horizon: ");
  expect_complaint("memory /nonexistent --capacity 1G", "/nonexistent");
  expect_complaint("memory " + file("0,1\n") + " --capacity 1G", "fewer than two readings");
  expect_complaint("memory " + file("0,1\n1,\x1b[2J\n") + " --capacity 1G", "line 2: ");
  expect_complaint("memory " + file("0,1\n1,2\n1,2\n") + " --capacity 1G", "line 3: time 1 is not later");
}

}  // namespace berth::test
