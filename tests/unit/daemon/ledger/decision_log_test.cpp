// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/decision_log.h"

#include "os/sqlite.h"
#include "tests/no_threads.h"
#include "tests/patience.h"
#include "tests/unit/daemon/fake_node.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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

// The disk of a busy machine may take longer than the log waits for it.
bool is_written(DecisionLog& log) {
  return test::eventually([&log] {
    log.go_on();
    return !log.problem();
  });
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
    ASSERT_TRUE(is_written(log));
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
    ASSERT_TRUE(is_written(log));
  }
  DecisionLog log(node.state_dir(), kWeek_s);
  std::vector<LogEntry> entries;
  // Where the disk of a busy machine does not answer in time, the log answers from memory.
  ASSERT_TRUE(test::eventually([&] {
    entries = log.newest(0);
    return entries.size() == DecisionLog::kMaxAnswer;
  }));
  EXPECT_EQ(entries.front().workload, "last");
  EXPECT_LT(std::filesystem::file_size(node.state_dir() / "decisions.db"), 40U << 20);
}

TEST_F(DecisionLogClockTest, NoUserPushesOutTheEntriesOfOthers) {
  const auto of_user = [](double time, std::uint32_t user) {
    auto made = entry(time, "user/" + std::to_string(user));
    made.user = user;
    return made;
  };
  {
    DecisionLog log = open();
    append(log, "first");
    // More of each user than there is room for, and more users than there is room for together.
    for (std::uint32_t user = 1000; user < 1012; ++user) {
      std::vector<LogEntry> entries(DecisionLog::kMaxOfUser + 100, of_user(wall, user));
      entries.front().decision = "d-first";
      log.append(entries);
      ASSERT_TRUE(is_written(log));
    }
    append(log, "root");
    pass(700);
    append(log, "last");
  }
  auto file = os::Database::open(node.state_dir() / "decisions.db", "decision log").value();
  const auto count = [&file](const char* condition) {
    auto select = file.prepare(fmt::format("SELECT count(*) FROM decisions WHERE {}", condition).c_str());
    EXPECT_TRUE(select && select->step().value_or(false));
    return static_cast<std::size_t>(select->number(0));
  };
  EXPECT_EQ(count("user IS NULL"), 3U);
  EXPECT_EQ(count("user = 1011"), DecisionLog::kMaxOfUser);
  EXPECT_EQ(count("user IS NOT NULL"), DecisionLog::kMaxOfUsers);
  // Each keeps its newest.
  EXPECT_EQ(count("decision = 'd-first'"), 0U);
}

TEST(DecisionLog, TheOldestOfAFullLogIsFoundByItsDecision) {
  const test::FakeNode node;
  auto first = entry(1, "first");
  first.decision = "d-first";
  {
    DecisionLog log(node.state_dir(), kWeek_s);
    log.append({first});
    for (int batch = 0; batch < 10; ++batch) log.append(std::vector<LogEntry>(9'999, entry(2, "b")));
    ASSERT_TRUE(is_written(log));
  }
  const DecisionLog log(node.state_dir(), kWeek_s);
  const std::vector<LogEntry> only{first};
  EXPECT_TRUE(test::eventually([&] { return log.of_decision("d-first") == only; }));
  EXPECT_TRUE(test::eventually(
      [&] { return log.find({.since = {}, .workload = "first", .policy = {}, .kind = {}}, 5) == only; }));
}

// In the file and in memory, against the words of the header.
RC_GTEST_PROP(DecisionLogFilter, FindsWhatItAccepts, ()) {
  const test::FakeNode node;
  const auto word = [](std::vector<std::string> words) { return *rc::gen::elementOf(std::move(words)); };
  const std::vector<std::string> ids{"web",         "web.service", "a/web.service", "a/web",
                                     "a/web.scope", "a/xweb",      "web/a",         "a/web.service.x",
                                     "b%",          "b_",          "a/b%.service",  "\xc3\xa4/web"};
  std::vector<LogEntry> entries;
  const int count = *rc::gen::inRange(0, 20);
  for (int i = 0; i < count; ++i) {
    LogEntry made = entry(*rc::gen::inRange(0, 5), word(ids));
    made.kind = word({"pin", "evict"});
    made.policy = word({"", "eviction"});
    entries.push_back(made);
  }
  LogFilter filter;
  if (*rc::gen::arbitrary<bool>()) filter.since = *rc::gen::inRange(0, 5);
  filter.workload = word({"", "web", "web.service", "a/web", "b%", "b_", "xweb"});
  filter.policy = word({"", "eviction"});
  filter.kind = word({"", "pin"});
  std::vector<LogEntry> expected;
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    const std::string& id = it->workload;
    bool named = filter.workload.empty();
    for (const char* suffix : {"", ".service", ".scope"}) {
      const std::string name = "/" + filter.workload + suffix;
      const std::string path = "/" + id;
      named = named || (path.size() >= name.size() && path.substr(path.size() - name.size()) == name);
    }
    if (named && it->time >= filter.since.value_or(0) && (filter.kind.empty() || it->kind == filter.kind) &&
        (filter.policy.empty() || it->policy == filter.policy)) {
      expected.push_back(*it);
    }
  }
  DecisionLog stored(node.state_dir(), kWeek_s);
  stored.append(entries);
  RC_ASSERT(is_written(stored));
  RC_ASSERT(stored.find(filter, 0) == expected);
  DecisionLog in_memory("/proc/no/such", kWeek_s);
  in_memory.append(entries);
  RC_ASSERT(in_memory.problem().has_value());
  RC_ASSERT(in_memory.find(filter, 0) == expected);
}

TEST(DecisionLog, WithoutAThreadEntriesWaitForOne) {
  const test::FakeNode node;
  {
    DecisionLog log(node.state_dir(), kWeek_s);
    {
      const berth::test::NoThreads none;
      log.append({entry(1, "a")});
      ASSERT_TRUE(log.problem());
      EXPECT_NE(log.problem()->find("no thread"), std::string::npos) << *log.problem();
    }
    ASSERT_TRUE(is_written(log));
  }
  DecisionLog log(node.state_dir(), kWeek_s);
  EXPECT_EQ(log.newest(0), (std::vector<LogEntry>{entry(1, "a")}));
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
