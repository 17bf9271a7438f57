// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/decision_log.h"

#include "os/sqlite.h"
#include "tests/unit/daemon/fake_node.h"

#include <filesystem>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

constexpr double kWeek_s = 7 * 86400.0;

LogEntry entry(double time, const std::string& workload) {
  LogEntry entry;
  entry.time = time;
  entry.decision = "d-0123456789ab";
  entry.mode = "enforce";
  entry.kind = "pin";
  entry.workload = workload;
  entry.attribute = "cpuset.cpus";
  entry.old_value = "";
  entry.new_value = "0-1";
  entry.policy = "interference";
  entry.reason = "score 0.1; \"quoted\", \xc3\xa4";
  entry.result = "applied";
  return entry;
}

TEST(DecisionLog, GivesBackWhatWasWrittenNewestFirst) {
  const test::FakeNode node;
  auto failed = entry(2, "b");
  failed.result = "failed";
  failed.error = "EBUSY";
  {
    DecisionLog log(node.state_dir(), kWeek_s);
    ASSERT_FALSE(log.problem());
    log.append({entry(1, "a"), failed});
  }
  DecisionLog log(node.state_dir(), kWeek_s);
  EXPECT_EQ(log.newest(0), (std::vector<LogEntry>{failed, entry(1, "a")}));
  EXPECT_EQ(log.newest(1), (std::vector<LogEntry>{failed}));
}

// A host whose wall clock can be set.
class DecisionLogClockTest : public testing::Test {
 protected:
  os::Clock clock() {
    return os::Clock({.boot = [this] { return boot; }, .wall = [this] { return wall; }});
  }
  DecisionLog open(const std::string& boot_id = "boot-1") {
    return {node.state_dir(), kDay_s, clock(), boot_id};
  }
  void pass(double seconds) {
    boot += seconds;
    wall += seconds;
  }
  void append(DecisionLog& log, const std::string& workload) const { log.append({entry(wall, workload)}); }
  std::vector<std::string> kept() {
    const DecisionLog log = open("");
    std::vector<std::string> workloads;
    for (const auto& entry : log.newest(0)) workloads.push_back(entry.workload);
    return workloads;
  }

  static constexpr double kDay_s = 86400;
  const test::FakeNode node;
  double boot = 100;
  double wall = 1.8e9;
};

TEST_F(DecisionLogClockTest, ForgetsWhatIsOlderThanItsRetention) {
  {
    DecisionLog log = open();
    append(log, "old");
    pass(kDay_s / 2);
    append(log, "young");
    pass(kDay_s / 2 + 1);
    append(log, "new");
  }
  EXPECT_EQ(kept(), (std::vector<std::string>{"new", "young"}));
}

TEST_F(DecisionLogClockTest, ForgetsNothingElseWhenTheWallClockIsSet) {
  for (const double step : {-28800.0, -3600.0, 3600.0, 28800.0}) {
    for (const bool restart : {false, true}) {
      std::filesystem::remove(node.state_dir() / "decisions.db");
      auto log = std::make_unique<DecisionLog>(node.state_dir(), 1800, clock(), "boot-1");
      append(*log, "old");
      pass(900);
      append(*log, "young");
      wall += step;
      if (restart) log = std::make_unique<DecisionLog>(node.state_dir(), 1800, clock(), "boot-1");
      pass(890);
      append(*log, "new");
      EXPECT_EQ(kept().size(), 3U) << step << ": the oldest entry is not 30 minutes old";
      pass(620);
      append(*log, "last");
      log.reset();
      EXPECT_EQ(kept(), (std::vector<std::string>{"last", "new", "young"})) << step << " " << restart;
    }
  }
}

TEST_F(DecisionLogClockTest, OfAnEarlierBootIsJudgedOnceNtpHadTimeToCorrectTheClock) {
  {
    DecisionLog log = open();
    append(log, "young");
  }
  boot = 5;
  const double right = wall + 1000;
  wall += 10 * 365 * kDay_s;
  {
    DecisionLog log = open("boot-2");
    append(log, "wrong time");
    pass(300);
    wall = right + 300;
    append(log, "right time");
    pass(400);
    append(log, "later");
  }
  EXPECT_EQ(kept(), (std::vector<std::string>{"later", "right time", "wrong time", "young"}));
  {
    DecisionLog log = open("boot-2");
    pass(kDay_s + 1);
    append(log, "last");
  }
  EXPECT_EQ(kept(), (std::vector<std::string>{"last"}));
}

TEST_F(DecisionLogClockTest, TakesOverTheFileOfAnEarlierVersion) {
  {
    auto old = os::Database::open(node.state_dir() / "decisions.db", "decision log").value();
    ASSERT_TRUE(old.run(R"(CREATE TABLE decisions (
        id INTEGER PRIMARY KEY, time REAL NOT NULL, decision TEXT NOT NULL, mode TEXT NOT NULL, kind TEXT NOT NULL,
        workload TEXT NOT NULL, attribute TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL,
        policy TEXT NOT NULL, reason TEXT NOT NULL, result TEXT NOT NULL, error TEXT);
      INSERT INTO decisions VALUES (1, 1.8e9, '', 'enforce', 'pin', 'first', '', '', '', '', '', 'applied', NULL);
      INSERT INTO decisions VALUES (2, 1.7e9, '', 'enforce', 'pin', 'old', '', '', '', '', '', 'applied', NULL);
    )"));
  }
  {
    DecisionLog log = open();
    ASSERT_EQ(log.problem(), std::nullopt);
    append(log, "second");
    pass(700);
    append(log, "third");
  }
  EXPECT_EQ(kept(), (std::vector<std::string>{"third", "second", "first"}));
}

TEST(DecisionLog, IsBoundedInNumber) {
  const test::FakeNode node;
  {
    DecisionLog log(node.state_dir(), kWeek_s);
    log.append(std::vector<LogEntry>(DecisionLog::kMaxEntries + 500, entry(1000, "x")));
    log.append({entry(2000, "last")});
  }
  DecisionLog log(node.state_dir(), kWeek_s);
  const auto entries = log.newest(0);
  EXPECT_EQ(entries.size(), DecisionLog::kMaxAnswer);
  EXPECT_EQ(entries.front().workload, "last");
  EXPECT_LT(std::filesystem::file_size(node.state_dir() / "decisions.db"), 40U << 20);
}

TEST(DecisionLog, WithoutADirectoryKeepsTheNewestInMemory) {
  const test::FakeNode node;
  DecisionLog log(node.state_dir() / "missing", kWeek_s);
  ASSERT_TRUE(log.problem());
  EXPECT_NE(log.problem()->find("decisions.db"), std::string::npos);
  for (int i = 0; i < 1000; ++i) log.append({entry(i, "w")});
  const auto entries = log.newest(0);
  EXPECT_EQ(entries.size(), DecisionLog::kMaxInMemory);
  EXPECT_DOUBLE_EQ(entries.front().time, 999);
}

TEST(DecisionLog, AFileThatIsNoDatabaseIsSaidAndLeftAlone) {
  const test::FakeNode node;
  const std::string text(8192, 'x');
  std::ofstream(node.state_dir() / "decisions.db") << text;
  DecisionLog log(node.state_dir(), kWeek_s);
  EXPECT_TRUE(log.problem());
  log.append({entry(1, "a")});
  EXPECT_EQ(log.newest(0).size(), 1U);
  EXPECT_EQ(test::read_text(node.state_dir() / "decisions.db"), text);
}

}  // namespace
}  // namespace berth::daemon
