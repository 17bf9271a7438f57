// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/interviewer.h"

#include "tests/unit/spark/collector_fixture.h"

#include <array>
#include <cstdio>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class InterviewerTest : public CollectorTest {};

TEST_F(InterviewerTest, ASilentSocketTakesOneTurnAndTheSearchGoesOnBehindIt) {
  add_driver();
  proc.listen(10, 12, "0100007F:0001");
  proc.listen(10, 13, "0100007F:0002");
  Collector collecting = collector();
  silent = {"127.0.0.1:1/", "127.0.0.1:2/"};
  EXPECT_THAT(collecting.collect(kNow).apps, IsEmpty());
  EXPECT_EQ(requests, 1);
  EXPECT_TRUE(collecting.goes_on());
  EXPECT_THAT(collecting.collect(kNow + 1).apps, IsEmpty());
  EXPECT_EQ(requests, 2);
  const Observation found = collecting.collect(kNow + 2);
  EXPECT_THAT(found.apps, SizeIs(1));
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_FALSE(collecting.goes_on());
}

TEST_F(InterviewerTest, SilentDriversHoldUpNobodyForLongerThanARound) {
  for (int pid = 100; pid < 140; ++pid) {
    proc.add(pid, test::client_driver(), "silent.scope");
    proc.listen(pid, pid, "0100007F:0001");
  }
  silent = {"127.0.0.1:1/"};
  proc.add(200, test::client_driver(), "driver.scope");
  proc.listen(200, 11, "0100007F:0FC8");
  Collector collecting = collector();
  Observation found;
  int rounds = 0;
  for (; found.apps.empty() && rounds < 40; ++rounds) {
    const double begun = clock;
    found = collecting.collect(kNow + rounds);
    EXPECT_LE(clock - begun, Interviewer::kRound_s + Interviewer::kTurn_s);
  }
  EXPECT_LT(rounds, 25) << "everybody gets his turn";
  for (; rounds < 80; ++rounds) {
    requests = 0;
    found = collecting.collect(kNow + rounds);
    EXPECT_THAT(found.apps, SizeIs(1));
    EXPECT_GE(requests, 1) << "who answers is asked in every round";
  }
}

TEST_F(InterviewerTest, DriversThatAnswerSlowlyKeepNobodyFromBeingHeard) {
  for (int pid = 100; pid < 103; ++pid) {
    proc.add(pid, test::client_driver(), "silent.scope");
    proc.listen(pid, pid, "0100007F:0001");
  }
  silent = {"127.0.0.1:1/"};
  add_driver();
  slow_s = 2.9;
  Collector collecting = collector();
  int rounds = 0;
  do collecting.collect(kNow + rounds);
  while (collecting.goes_on() && ++rounds < 40);
  EXPECT_FALSE(collecting.goes_on()) << "each had its turn";
}

TEST_F(InterviewerTest, ADriverThatAnswersSlowlyIsReadBitByBit) {
  add_driver();
  driver.stages = {{.id = 0, .status = "COMPLETE", .tasks = 600, .list = std::vector<test::FakeTask>(600)}};
  slow_s = 2;
  Collector collecting = collector();
  Observation found;
  int rounds = 0;
  for (; found.apps.empty() && rounds < 20; ++rounds) {
    requests = 0;
    found = collecting.collect(kNow + rounds);
    EXPECT_LE(requests, 6) << "who it is, settings, stages, jobs, what is kept, and a page";
    EXPECT_THAT(found.problems, IsEmpty());
  }
  ASSERT_THAT(found.apps, SizeIs(1));
  EXPECT_THAT(found.apps[0].stages[0].tasks, SizeIs(600));
}

// Drivers of several users, each at a port of its own.
class SeveralDriversTest : public InterviewerTest {
 protected:
  // A driver of `user` whose only stage has so many tasks.
  void add(int pid, int user, int tasks) {
    test::FakeDriver& its = drivers[pid];
    its.id = "app-" + std::to_string(pid);
    its.stages = {{.id = 0,
                   .status = "COMPLETE",
                   .tasks = tasks,
                   .list = std::vector<test::FakeTask>(static_cast<std::size_t>(tasks))}};
    proc.add(pid, test::client_driver(), "driver-" + std::to_string(pid) + ".scope");
    std::array<char, 16> address{};
    std::snprintf(address.data(), address.size(), "0100007F:%04X", static_cast<unsigned>(pid));
    proc.listen(pid, pid, address.data());
    proc.set_user(pid, user);
  }
  Collector limited() {
    return collector_of(Interviewer([this](const std::string& url) { return get(url); }, {},
                                    [this] { return clock; }, kMost));
  }
  // Until nothing new comes, a while at least.
  Observation settled(Collector& collecting) {
    Observation found;
    for (int i = 0; i < 60; ++i) {
      found = collecting.collect(now += 2);
      for (const std::string& problem : found.problems) problems.insert(problem);
    }
    return found;
  }
  model::Result<std::string> get(const std::string& url) {
    int pid = 0;
    std::sscanf(url.c_str(), "http://127.0.0.1:%d", &pid);
    asked.push_back(pid);
    return drivers.at(pid).get(url);
  }
  static std::vector<std::string> ids(const Observation& found) {
    std::vector<std::string> ids;
    for (const auto& app : found.apps) ids.push_back(app.id);
    return ids;
  }

  // Two of three drivers with so many tasks fit.
  static constexpr int kMany = 250;
  static constexpr std::size_t kMost =
      kMany * 5 / 2 * (sizeof(RestTask) * 11 / 10 + Driver::kCopies * sizeof(model::SparkTask));

  std::map<int, test::FakeDriver> drivers;
  std::vector<int> asked;
  std::set<std::string> problems;
  double now = kNow;
};

TEST_F(SeveralDriversTest, ADriverBeyondTheLimitOfAllIsRefusedByName) {
  for (int pid = 10; pid < 16; ++pid) add(pid, 1000, kMany);
  Collector collecting = limited();
  EXPECT_THAT(ids(settled(collecting)), SizeIs(2)) << "as many as fit";
  EXPECT_THAT(problems, ::testing::Contains(::testing::AllOf(
                            HasSubstr("Spark driver, pid 1"), HasSubstr("MiB for all drivers"),
                            HasSubstr("other drivers of user 1000 take"), HasSubstr("asks again later"),
                            HasSubstr("spark.ui.retainedTasks"))));
  // It is asked less and less.
  asked.clear();
  for (int i = 0; i < 100; ++i) collecting.collect(now += 2);
  std::map<int, int> times;
  for (const int pid : asked) ++times[pid];
  EXPECT_THAT(times, SizeIs(6));
}

TEST_F(SeveralDriversTest, ManyDriversOfOneUserDoNotKeepOutThoseOfAnother) {
  for (int pid = 10; pid < 30; ++pid) add(pid, 1000, kMany);
  Collector collecting = limited();
  settled(collecting);
  add(50, 1001, 100);
  add(51, 1002, 10);
  const Observation found = settled(collecting);
  EXPECT_THAT(ids(found), ::testing::IsSupersetOf({"app-50", "app-51"}));
  EXPECT_THAT(problems, ::testing::Contains(HasSubstr("drivers of other users need that memory")));
}

TEST_F(SeveralDriversTest, AUserThatHasItAllGivesHalfOfItToTheNext) {
  for (int pid = 10; pid < 16; ++pid) add(pid, 1000, kMany);
  Collector collecting = limited();
  settled(collecting);
  add(50, 1001, kMany);
  EXPECT_THAT(ids(settled(collecting)), ::testing::Contains("app-50"));
}

}  // namespace
}  // namespace berth::spark
