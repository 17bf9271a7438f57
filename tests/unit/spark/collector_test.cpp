// SPDX-License-Identifier: Apache-2.0
#include "spark/collector.h"

#include "spark/shared_now.h"
#include "tests/unit/spark/fake_driver.h"
#include "tests/unit/spark/fake_proc.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNow = 1'790'000'060;

class CollectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::endian::native != std::endian::little)
      GTEST_SKIP() << "the tables here are of a little-endian host";
    driver.stages = {{.id = 0, .status = "ACTIVE", .tasks = 2, .list = {{"0"}}}};
  }
  void add_driver(int pid = 10) {
    proc.add(pid, test::client_driver(), "driver.scope");
    proc.listen(pid, 11, "0100007F:0FC8");
  }
  // As another user's process looks without the right to see its descriptors.
  void add_unseen_driver(int pid, const std::string& cgroup) {
    proc.add(pid, test::client_driver(), cgroup);
    proc.listen(pid, 11, "0100007F:0FC8");
    std::filesystem::remove_all(proc.root() / std::to_string(pid) / "fd");
  }
  Collector collector() {
    const auto get = [this](const std::string& url) -> model::Result<std::string> {
      ++requests;
      const bool says_nothing = std::any_of(silent.begin(), silent.end(), [&](const std::string& endpoint) {
        return url.find(endpoint) != std::string::npos;
      });
      clock += says_nothing ? 3 : slow_s;
      if (failing || says_nothing)
        return model::fail(model::ErrorKind::transient, "GET " + url + ": took too long");
      return driver.get(url);
    };
    return Collector(proc.root(), get, {}, [this] { return clock; });
  }

  test::FakeProc proc;
  test::FakeDriver driver;
  bool failing = false;
  std::vector<std::string> silent;  // endpoints, each with a slash
  double slow_s = 0;                // for each answer
  double clock = 5000;              // monotonic, seconds
  int requests = 0;
};

TEST_F(CollectorTest, FindsApplicationsAndWhoBelongsToThem) {
  add_driver();
  proc.add(20, test::standalone_executor(driver.id, "0"), "e0.scope");
  proc.add(30, test::worker(), "worker.service");
  const Observation found = collector().collect(kNow);
  EXPECT_THAT(found.problems, IsEmpty());
  ASSERT_THAT(found.apps, SizeIs(1));
  EXPECT_EQ(found.apps[0].id, driver.id);
  ASSERT_THAT(found.members, SizeIs(3));
  EXPECT_EQ(found.members[0].identity,
            (model::SparkIdentity{driver.id, model::SparkRole::driver, std::nullopt}));
  EXPECT_EQ(found.members[1].identity, (model::SparkIdentity{driver.id, model::SparkRole::executor, "0"}));
  EXPECT_EQ(found.members[2].identity.app, "");
}

TEST_F(CollectorTest, SeesWhoElseLivesWhereSparkDoes) {
  proc.add_plain(4, "cron", "system.slice/cron.service");
  EXPECT_EQ(collector().collect(kNow).bystanders, nullptr);
  proc.add(20, test::standalone_executor("app-1", "0"), "e0.scope");
  const Observation found = collector().collect(kNow);
  ASSERT_NE(found.bystanders, nullptr);
  EXPECT_THAT(*found.bystanders,
              ElementsAre(std::make_pair("system.slice/cron.service", Bystanders{4, "cron", 1})));
}

TEST_F(CollectorTest, AsksNobodyWhereThereIsNoDriver) {
  proc.add(20, test::standalone_executor("app-1", "0"), "e0.scope");
  const Observation found = collector().collect(kNow);
  EXPECT_EQ(requests, 0);
  EXPECT_THAT(found.apps, IsEmpty());
  EXPECT_THAT(found.members, SizeIs(1));
}

TEST_F(CollectorTest, ADriverThatFailsIsAskedLessAndLessAndForgottenAfterAWhile) {
  add_driver();
  Collector collecting = collector();
  EXPECT_THAT(collecting.collect(kNow).apps, SizeIs(1));
  failing = true;
  requests = 0;
  Observation found = collecting.collect(kNow + 2);
  EXPECT_THAT(found.problems, ElementsAre(HasSubstr("Spark driver, pid 10: GET ")));
  EXPECT_THAT(found.apps, SizeIs(1)) << "what it said last";
  EXPECT_EQ(requests, 1);
  for (double after = 3; after < 40; ++after) found = collecting.collect(kNow + after);
  EXPECT_THAT(found.apps, IsEmpty());
  EXPECT_THAT(found.members[0].identity.app, driver.id) << "it still is that application's";
  EXPECT_LE(requests, 6);
  failing = false;
  for (double after = 40; after < 110; ++after) found = collecting.collect(kNow + after);
  EXPECT_THAT(found.apps, SizeIs(1));
  EXPECT_THAT(found.problems, IsEmpty());
}

TEST_F(CollectorTest, WhatADriverSaysReachesTheLogShortAndWithoutControlCharacters) {
  add_driver();
  driver.properties = {{"spark.eventLog.enabled", "true"},
                       {"spark.eventLog.dir", "hdfs://\x1b[31m" + std::string(3000, 'x')}};
  Collector collecting(
      proc.root(), [this](const std::string& url) { return driver.get(url); },
      [](const std::filesystem::path&) -> model::Result<os::FileDescriptor> {
        return model::fail(model::ErrorKind::gone, "never asked");
      });
  const Observation found = collecting.collect(kNow);
  ASSERT_THAT(found.problems, SizeIs(1));
  EXPECT_THAT(found.problems[0], HasSubstr("spark.eventLog.dir hdfs://?[31mxxx"));
  EXPECT_LT(found.problems[0].size(), 500U);
}

TEST_F(CollectorTest, ADriverThatIsGoneIsForgotten) {
  add_driver();
  Collector collecting = collector();
  collecting.collect(kNow);
  proc.remove(10);
  const Observation found = collecting.collect(kNow + Collector::kLookAgain_s);
  Observation nothing;
  nothing.looked_at = kNow + Collector::kLookAgain_s;
  EXPECT_EQ(found, nothing);
}

TEST_F(CollectorTest, AServerThatComesAfterItsProcessIsFound) {
  proc.add(10, test::client_driver(), "driver.scope");
  Collector collecting = collector();
  EXPECT_THAT(collecting.collect(kNow).apps, IsEmpty());
  proc.listen(10, 11, "0100007F:0FC8");
  for (double after = 1; after < 30; ++after) collecting.collect(kNow + after);
  EXPECT_THAT(collecting.collect(kNow + 30).apps, SizeIs(1));
}

TEST_F(CollectorTest, WhereADriverListensUnseenTheUsualPortsAreTried) {
  add_unseen_driver(10, "driver.scope");
  Collector collecting = collector();
  Observation found = collecting.collect(kNow);
  EXPECT_THAT(found.apps, SizeIs(1));
  EXPECT_EQ(found.members[0].identity.role, model::SparkRole::driver);
  EXPECT_EQ(found.members[0].identity.app, driver.id);
  // With a second one of the same user the two cannot be told apart.
  add_unseen_driver(12, "other.scope");
  found = collecting.collect(kNow + Collector::kLookAgain_s);
  EXPECT_THAT(found.apps, SizeIs(1));
  ASSERT_THAT(found.members, SizeIs(2));
  EXPECT_EQ(found.members[0].identity.app, "");
  EXPECT_EQ(found.members[1].identity.app, "");
}

TEST_F(CollectorTest, WhatAnotherUserSaysAtTheUsualPortsIsNotTheDrivers) {
  add_unseen_driver(10, "driver.scope");
  proc.set_user(10, 1001);
  Collector collecting = collector();
  const Observation found = collecting.collect(kNow);
  EXPECT_EQ(requests, 0);
  EXPECT_THAT(found.apps, IsEmpty());
  EXPECT_THAT(found.problems, ElementsAre(HasSubstr("found no application at the ports of the driver")));
}

TEST_F(CollectorTest, AnotherUsersUnseenDriverLeavesNoDoubtWhoseAnApplicationIs) {
  add_unseen_driver(10, "driver.scope");
  add_unseen_driver(12, "other.scope");
  proc.set_user(12, 1001);
  const Observation found = collector().collect(kNow);
  ASSERT_THAT(found.members, SizeIs(2));
  EXPECT_EQ(found.members[0].identity.app, driver.id);
  EXPECT_EQ(found.members[1].identity.app, "");
}

TEST_F(CollectorTest, ASilentSocketTakesOneTurnAndTheSearchGoesOnBehindIt) {
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

TEST_F(CollectorTest, SilentDriversHoldUpNobodyForLongerThanARound) {
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
    EXPECT_LE(clock - begun, Collector::kRound_s + Collector::kTurn_s);
  }
  EXPECT_LT(rounds, 25) << "everybody gets his turn";
  for (; rounds < 80; ++rounds) {
    requests = 0;
    found = collecting.collect(kNow + rounds);
    EXPECT_THAT(found.apps, SizeIs(1));
    EXPECT_GE(requests, 1) << "who answers is asked in every round";
  }
}

TEST_F(CollectorTest, DriversThatAnswerSlowlyKeepNobodyFromBeingHeard) {
  for (int pid = 100; pid < 103; ++pid) {
    proc.add(pid, test::client_driver(), "silent.scope");
    proc.listen(pid, pid, "0100007F:0001");
  }
  silent = {"127.0.0.1:1/"};
  add_driver();
  slow_s = 2.9;
  Collector collecting = collector();
  for (int rounds = 0; collecting.goes_on() && rounds < 40; ++rounds) collecting.collect(kNow + rounds);
  EXPECT_FALSE(collecting.goes_on()) << "each had its turn";
}

TEST_F(CollectorTest, ADriverThatAnswersSlowlyIsReadBitByBit) {
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

TEST_F(CollectorTest, ApplicationsTellTheirProgress) {
  add_driver();
  const Observation found = collector().collect(kNow);
  EXPECT_THAT(found.progress, ElementsAre(std::make_pair(
                                  driver.id, model::ProgressReport{.time = kNow, .fraction = 1.0 / 3})));
}

class OccupanciesTest : public ::testing::Test {
 protected:
  static Member executor_at(const std::string& cgroup, pid_t pid = 7) {
    return {pid, "CoarseGrainedExecutorBackend", cgroup, ProcessKind::executor, kExecutor};
  }
  static Member worker_at(const std::string& cgroup) {
    return {5, "Worker", cgroup, ProcessKind::service, {}};
  }
  void others(std::map<std::string, Bystanders> found) {
    seen.bystanders = std::make_shared<const std::map<std::string, Bystanders>>(std::move(found));
  }
  Occupancy of(const std::string& workload) {
    const auto found = occupancies(seen, [&](const std::string& id) { return id == workload; });
    EXPECT_LE(found.size(), 1U);
    return found.empty() ? Occupancy() : found.begin()->second;
  }

  static inline const model::SparkIdentity kExecutor{"app-1", model::SparkRole::executor, "0"};
  Observation seen;
};

TEST_F(OccupanciesTest, AnExecutorAloneIsItsWorkload) {
  seen.members = {executor_at("pod/c1/sub"), executor_at("elsewhere"), executor_at("")};
  others({{"pod/c10", {3, "x", 1}}, {"pod", {4, "y", 1}}, {"pod/c", {4, "y", 1}}});
  EXPECT_EQ(of("pod/c1"), (Occupancy{kExecutor, std::nullopt}));
}

TEST_F(OccupanciesTest, WhatAWorkerSharesWithItsExecutorsIsSpared) {
  seen.members = {worker_at("worker.service"), executor_at("worker.service")};
  EXPECT_EQ(of("worker.service"),
            (Occupancy{std::nullopt, "its cgroup is shared by Worker (pid 5), executor 0 of app-1 (pid 7)"}));
}

TEST_F(OccupanciesTest, WhatOthersLiveInIsSpared) {
  seen.members = {executor_at("e.scope/jvm")};
  others({{"e.scope/agent", {3, "agent", 1}}});
  EXPECT_EQ(of("e.scope"),
            (Occupancy{kExecutor, "its cgroup is shared by executor 0 of app-1 (pid 7), agent (pid 3)"}));
  others({{"e.scope", {3, "bash", 2}}, {"e.scope/a", {4, "vim", 3}}});
  EXPECT_EQ(of("e.scope").spared,
            "its cgroup is shared by executor 0 of app-1 (pid 7), bash (pid 3), vim (pid 4) and 3 more");
}

TEST_F(OccupanciesTest, OfManyTheFirstFewAreNamed) {
  for (pid_t pid = 1; pid <= 100; ++pid) seen.members.push_back(executor_at("s", pid));
  EXPECT_THAT(of("s").spared.value_or(""), HasSubstr("(pid 4) and 96 more"));
}

TEST_F(OccupanciesTest, ServicesAreSpared) {
  seen.members = {worker_at("worker.service")};
  EXPECT_EQ(of("worker.service"),
            (Occupancy{std::nullopt, "Spark's Worker (pid 5) serves executors in other cgroups"}));
}

TEST_F(OccupanciesTest, ADriverOfNobodyKnowsWhatIsSpared) {
  seen.members = {{9, "SparkSubmit", "d.scope", ProcessKind::driver, {}}};
  EXPECT_EQ(of("d.scope"), (Occupancy{std::nullopt, "SparkSubmit (pid 9) drives an unknown application"}));
  seen.members[0].identity = {"app-1", model::SparkRole::driver, std::nullopt};
  EXPECT_EQ(of("d.scope"), (Occupancy{seen.members[0].identity, std::nullopt}));
}

TEST_F(OccupanciesTest, AWorkloadWhoseExecutorsAndDriversAreOfOneApplicationIsThatApplications) {
  const auto only = [this] {
    return only_applications(seen, [](const std::string& id) { return id == "s"; });
  };
  seen.members = {worker_at("s"), executor_at("s/1", 7), executor_at("s/2", 8)};
  EXPECT_THAT(only(), ElementsAre(std::make_pair("s", "app-1")));
  seen.members.push_back({9, "SparkSubmit", "s", ProcessKind::driver, {}});
  EXPECT_THAT(only(), IsEmpty()) << "a driver of nobody knows which";
  seen.members.back().identity = {"app-1", model::SparkRole::driver, std::nullopt};
  EXPECT_THAT(only(), ElementsAre(std::make_pair("s", "app-1")));
  seen.members.back().identity.app = "app-2";
  EXPECT_THAT(only(), IsEmpty());
  seen.members = {worker_at("s"), executor_at("elsewhere")};
  EXPECT_THAT(only(), IsEmpty());
}

TEST(SharedNow, IsAskedOfTheProcessesThereAre) {
  const test::FakeProc proc;
  proc.add_plain(3, "sleep", "batch.scope");
  proc.add(20, test::standalone_executor("app-1", "0"), "e0.scope/jvm");
  proc.add(21, test::client_driver(), "driver.scope");
  EXPECT_EQ(shared_now(proc.root(), "batch.scope"), std::nullopt) << "nothing of Spark's";
  EXPECT_EQ(shared_now(proc.root(), "e0.scope"), std::nullopt);
  EXPECT_EQ(shared_now(proc.root(), "driver.scope"), std::nullopt);
  proc.add(22, test::worker(), "e0.scope");
  EXPECT_EQ(shared_now(proc.root(), "e0.scope"),
            "its cgroup is shared by executor 0 of app-1 (pid 20), Worker (pid 22)");
  proc.add_plain(23, "vim", "driver.scope");
  EXPECT_EQ(shared_now(proc.root(), "driver.scope"),
            "its cgroup is shared by SparkSubmit (pid 21), vim (pid 23)");
  EXPECT_EQ(shared_now(proc.root() / "nowhere", "e0.scope"), std::nullopt);
}

}  // namespace
}  // namespace berth::spark
