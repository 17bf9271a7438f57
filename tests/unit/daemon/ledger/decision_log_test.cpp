// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/decision_log.h"

#include "tests/unit/daemon/fake_node.h"

#include <filesystem>
#include <fstream>

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

TEST(DecisionLog, ForgetsWhatIsOlderThanItsRetention) {
  const test::FakeNode node;
  {
    DecisionLog log(node.state_dir(), 100);
    log.append({entry(1000, "old")});
    log.append({entry(2000, "new")});
  }
  const DecisionLog log(node.state_dir(), 100);
  EXPECT_EQ(log.newest(0), (std::vector<LogEntry>{entry(2000, "new")}));
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
