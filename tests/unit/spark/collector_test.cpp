// SPDX-License-Identifier: Apache-2.0
#include "spark/collector.h"

#include "os/proc_files.h"
#include "spark/shared_now.h"
#include "tests/no_threads.h"
#include "tests/unit/spark/collector_fixture.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(CollectorTest, FindsApplicationsAndWhoBelongsToThem) {
  add_driver();
  proc.listen(10, 12, kDriverAddress);
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

TEST_F(CollectorTest, WithoutAThreadForALookWhatWasFoundBeforeStillCounts) {
  add_driver();
  Collector collecting = collector();
  ASSERT_THAT(collecting.collect(kNow).members, SizeIs(1));
  {
    const berth::test::NoThreads none;
    const Observation found = collecting.collect(kNow + Collector::kLookAgain_s);
    EXPECT_THAT(found.members, SizeIs(1));
    EXPECT_THAT(found.problems, ElementsAre(HasSubstr("processes: no thread can be had: ")));
  }
  EXPECT_THAT(collecting.collect(kNow + 2 * Collector::kLookAgain_s).problems, IsEmpty());
}

TEST_F(CollectorTest, ADriverOfAnotherUserIsNotTheDriverOfAnExecutor) {
  add_driver();
  proc.set_user(10, 1001);
  proc.add(20, test::standalone_executor(driver.id, "0"), "e0.scope");
  proc.add_socket("self", 12, kDriverAddress, 1000);
  const Observation found = collector().collect(kNow);
  EXPECT_THAT(found.apps, IsEmpty());
  EXPECT_THAT(found.progress, IsEmpty());
  EXPECT_THAT(found.problems, ElementsAre(HasSubstr("where user 1001 has no socket of this host")));
  EXPECT_EQ(found.members[0].identity.app, "") << "it drives an unknown application";
  EXPECT_EQ(found.members[1].identity.app, driver.id);
}

TEST_F(CollectorTest, AnExecutorOfAWorkersUserBelongsToTheDriverThatItNames) {
  add_driver();
  proc.listen(10, 12, kDriverAddress);
  proc.add(20, test::standalone_executor(driver.id, "0"), "e0.scope");
  proc.set_user(20, 900);
  const Observation found = collector().collect(kNow);
  EXPECT_THAT(found.apps, SizeIs(1));
  EXPECT_EQ(found.members[1].identity.app, driver.id);
}

TEST_F(CollectorTest, AnExecutorWhoseDriverIsElsewhereHasNoneHere) {
  add_driver();
  proc.add(20, test::standalone_executor(driver.id, "0"), "e0.scope");
  Collector collecting = collector();
  Observation found = collecting.collect(kNow);
  EXPECT_THAT(found.apps, IsEmpty());
  EXPECT_THAT(found.problems,
              ElementsAre(HasSubstr("executor 0 (pid 20) has its driver at 127.0.0.1:35121")));
  proc.remove(10);
  add_driver(11);
  proc.listen(11, 12, kDriverAddress);
  found = collecting.collect(kNow + Collector::kLookAgain_s);
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(found.apps, SizeIs(1));
}

TEST_F(CollectorTest, AnExecutorOfAnotherUserGetsNoneOfAnApplicationsFacts) {
  add_driver();
  proc.listen(10, 12, kDriverAddress);
  proc.add(20, test::standalone_executor(driver.id, "0"), "e0.scope");
  proc.add(21, test::standalone_executor(driver.id, "1"), "e1.scope");
  proc.set_user(21, 1001);
  const Observation found = collector().collect(kNow);
  ASSERT_THAT(found.apps, SizeIs(1));
  EXPECT_EQ(found.apps[0].id, driver.id);
  EXPECT_EQ(found.members[1].identity.app, driver.id);
  EXPECT_EQ(found.members[2].identity.app, driver.id + " of user 1001");
}

TEST_F(CollectorTest, OfVeryManyProcessesOfOneUserTheFirstAreLookedAt) {
  constexpr int kMost = static_cast<int>(Collector::kMostProcesses);
  for (int pid = 100; pid < 100 + kMost + 5; ++pid) {
    proc.write(pid, "cmdline", std::string("java") + '\0' + "org.apache.spark.deploy.worker.Worker" + '\0');
    proc.write(pid, "stat",
               std::to_string(pid) + " (java) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 100 20 21\n");
    proc.write(pid, "cgroup", "0::/many.scope\n");
    proc.set_user(pid, 1001);
  }
  proc.add(20'000, test::worker(), "worker.service");
  const Observation found = collector().collect(kNow);
  EXPECT_THAT(found.members, SizeIs(Collector::kMostProcesses + 1));
  EXPECT_EQ(found.members.back().pid, 20'000) << "those of another user are all seen";
  EXPECT_THAT(found.problems,
              ElementsAre("Spark processes: user 1001 has 5 more than the 1000 that berth looks at"));
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
  Collector collecting =
      collector_of(Interviewer([this](const std::string& url) { return driver.get(url); },
                               [](const ProcessId&, const std::filesystem::path&) -> model::Result<LogFile> {
                                 return model::fail(model::ErrorKind::gone, "never asked");
                               }));
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
  seen.members[0].name = "YARN's NodeManager";
  EXPECT_EQ(of("worker.service"),
            (Occupancy{std::nullopt, "YARN's NodeManager (pid 5) serves executors in other cgroups"}));
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
  const auto shared_in = [&](const std::string& workload) {
    return shared_now(proc.root(), workload, os::pids_of(proc.root()));
  };
  proc.add_plain(3, "sleep", "batch.scope");
  proc.add(20, test::standalone_executor("app-1", "0"), "e0.scope/jvm");
  proc.add(21, test::client_driver(), "driver.scope");
  EXPECT_EQ(shared_in("batch.scope"), std::nullopt) << "nothing of Spark's";
  EXPECT_EQ(shared_in("e0.scope"), std::nullopt);
  EXPECT_EQ(shared_in("driver.scope"), std::nullopt);
  proc.add(22, test::worker(), "e0.scope");
  EXPECT_EQ(shared_in("e0.scope"), "its cgroup is shared by executor 0 of app-1 (pid 20), Worker (pid 22)");
  proc.add_plain(23, "vim", "driver.scope");
  EXPECT_EQ(shared_in("driver.scope"), "its cgroup is shared by SparkSubmit (pid 21), vim (pid 23)");
  EXPECT_EQ(shared_now(proc.root() / "nowhere", "e0.scope", {20}), std::nullopt);
}

TEST(SharedNow, ReadsNothingOfOtherProcesses) {
  const test::FakeProc proc;
  proc.add(20, test::standalone_executor("app-1", "0"), "e0.scope");
  proc.add(22, test::worker(), "e0.scope");
  EXPECT_EQ(shared_now(proc.root(), "e0.scope", {20}), std::nullopt) << "the Worker was not listed";
  EXPECT_NE(shared_now(proc.root(), "e0.scope", {20, 22}), std::nullopt);
}

TEST(SharedNow, AChildOfASparkProcessOutsideIsNoBystander) {
  const test::FakeProc proc;
  proc.add(20, test::worker(), "worker.service");
  proc.add(21, test::standalone_executor("app-1", "0"), "e0.scope", 100, 20);
  proc.add_plain(22, "python3", "e0.scope", 20);
  proc.add_plain(23, "vim", "e0.scope", 1);
  EXPECT_EQ(shared_now(proc.root(), "e0.scope", {21, 22}), std::nullopt);
  EXPECT_NE(shared_now(proc.root(), "e0.scope", {21, 22, 23}), std::nullopt);
}

}  // namespace
}  // namespace berth::spark
