// SPDX-License-Identifier: Apache-2.0
#include "model/json.h"
#include "tests/unit/spark/sparkd/driver_fixture.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using test::FakeStage;
using test::FakeTask;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(DriverTest, ReadsStagesTasksAndSettings) {
  fake.stages = {
      stage(0, "COMPLETE", 2, {{"0", "SUCCESS", 1500, 100, 20}, {"1", "SUCCESS", 2500, 0, 0}}, 4096),
      stage(1, "ACTIVE", 3, {{"1", "SUCCESS", 500}, {"0", "RUNNING", 700}, {"0", "FAILED", 10}}),
      stage(2, "PENDING", 4, {}), stage(3, "SKIPPED", 4, {})};
  fake.jobs = {{0, 1, 2}};
  fake.properties = {{"spark.shuffle.service.enabled", "false"}, {"spark.app.name", "etl"}};
  EXPECT_EQ(round(), "");
  EXPECT_EQ(driver.app_id(), fake.id);
  const model::SparkApp read = app();
  EXPECT_EQ(read.id, fake.id);
  EXPECT_DOUBLE_EQ(read.calculated_time_s, 60);
  EXPECT_FALSE(read.shuffle_service);
  EXPECT_FALSE(read.migration);
  ASSERT_EQ(read.stages.size(), 3U);
  EXPECT_EQ(read.stages[0], (model::SparkStage{.id = 0,
                                               .parents = {},
                                               .partitions = 2,
                                               .shuffle_write_bytes = 4096,
                                               .job = 0,
                                               .tasks = {{"0", 120, 1.5}, {"1", 0, 2.5}}}));
  EXPECT_THAT(read.stages[1].parents, ElementsAre(0));
  EXPECT_THAT(read.stages[1].tasks, ElementsAre(model::SparkTask{"1", 0, 0.5}));
  EXPECT_EQ(read.stages[2].partitions, 4);
  EXPECT_THAT(read.stages[2].parents, ElementsAre(1));
  ASSERT_EQ(read.running.size(), 1U);
  EXPECT_EQ(read.running[0].executor, "0");
  EXPECT_DOUBLE_EQ(read.running[0].elapsed_s, 0.75);
}

TEST_F(DriverTest, ChainsTheStagesOfEachJobOnly) {
  fake.stages = {stage(0, "COMPLETE", 1, {{}}), stage(1, "COMPLETE", 1, {{}}), stage(2, "COMPLETE", 1, {{}})};
  fake.jobs = {{2}, {1, 0}};
  EXPECT_EQ(round(), "");
  EXPECT_THAT(app().stages[1].parents, ElementsAre(0));
  EXPECT_THAT(app().stages[2].parents, IsEmpty());
}

// As adaptive execution has it.
TEST_F(DriverTest, StagesThatAreNotRunAgainCountOnceAndLeadToTheirReaders) {
  fake.stages = {stage(0, "COMPLETE", 2, {{}, {}}, 100), stage(1, "SKIPPED", 2, {}),
                 stage(2, "COMPLETE", 2, {{}, {}}, 100), stage(3, "PENDING", 2, {}),
                 stage(4, "ACTIVE", 3, {{}})};
  fake.stages[1].rdd = fake.stages[0].rdd = 77;
  fake.stages[3].rdd = fake.stages[2].rdd = 88;
  fake.jobs = {{0}, {1, 2}, {3, 4}};
  EXPECT_EQ(round(), "");
  const model::SparkApp read = app();
  ASSERT_EQ(read.stages.size(), 3U);
  EXPECT_EQ(read.stages[1].id, 2);
  EXPECT_THAT(read.stages[1].parents, ElementsAre(0));
  EXPECT_EQ(read.stages[2].id, 4);
  EXPECT_THAT(read.stages[2].parents, ElementsAre(2));
  EXPECT_DOUBLE_EQ(driver.progress()->fraction, 5.0 / 8);
}

TEST_F(DriverTest, TheFirstStageThroughAKeptRddHasComputedIt) {
  fake.stages = {stage(0, "COMPLETE", 1, {{}}, 9), stage(1, "COMPLETE", 1, {{}}), stage(2, "ACTIVE", 1, {}),
                 stage(3, "PENDING", 1, {})};
  fake.jobs = {{0, 1}, {2}, {3}};
  for (const std::size_t reader : {1, 2, 3}) fake.stages[reader].through = {77, 78};
  fake.stages[3].through.push_back(79);
  fake.cached = {{77, 1}, {78, 0}, {79, 1}};
  EXPECT_EQ(round(), "");
  EXPECT_FALSE(app().stages[0].cached);
  EXPECT_TRUE(app().stages[1].cached);
  EXPECT_FALSE(app().stages[2].cached) << "it reads what is kept";
  EXPECT_FALSE(app().stages[3].cached) << "it has computed nothing yet";
  fake.cached.clear();  // unpersist()
  EXPECT_EQ(round(kNow + Driver::kListAgain_s), "");
  EXPECT_FALSE(app().stages[1].cached);
}

TEST_F(DriverTest, WhoOnlyLookedAtAPartOfAKeptRddHasNotComputedIt) {
  fake.stages = {stage(0, "COMPLETE", 1, {{"0", "SUCCESS", 10}}),
                 stage(1, "COMPLETE", 2, {{"0", "SUCCESS", 900}, {"1", "SUCCESS", 900}})};
  fake.jobs = {{0}, {1}};
  for (auto& it : fake.stages) it.through = {77};
  fake.cached = {{77, 2}};
  EXPECT_EQ(round(), "");
  EXPECT_FALSE(app().stages[0].cached) << "take(1)";
  EXPECT_TRUE(app().stages[1].cached);
}

TEST_F(DriverTest, WithoutWordOfKeptRddsTheRestIsReadAllTheSame) {
  fake.stages = {stage(0, "COMPLETE", 1, {{"0", "SUCCESS", 10}})};
  fake.jobs = {{0}};
  fake.instead["/storage/rdd"] = R"([{"id": -1}])";
  EXPECT_EQ(round(), "");
  EXPECT_THAT(driver.cached_problem(), HasSubstr("/storage/rdd: id is out of range"));
  EXPECT_EQ(app().stages.size(), 1U);
  EXPECT_EQ(app().stages[0].tasks.size(), 1U);
}

TEST_F(DriverTest, WhatIsKeptIsWhereItIsNow) {
  fake.stages = {stage(0, "COMPLETE", 4, {{"0"}, {"0"}, {"1"}, {"1"}})};
  fake.stages[0].through = {77};
  fake.jobs = {{0}};
  fake.cached = {{77, 3}};
  fake.blocks[77] = {{0, {"0"}}, {1, {"0", "1"}}, {2, {"2"}}};
  EXPECT_EQ(round(), "");
  EXPECT_TRUE(app().stages[0].cached);
  const auto keepers = [this] {
    std::vector<std::vector<std::string>> all;
    const model::SparkApp read = app();
    for (const model::SparkTask& task : read.stages[0].tasks) all.push_back(task.kept_by);
    return all;
  };
  EXPECT_THAT(keepers(), ElementsAre(ElementsAre("0"), IsEmpty(), ElementsAre("2"), IsEmpty()));
  fake.blocks[77] = {test::FakeBlock{1, {"1"}}};
  EXPECT_EQ(round(kNow + Driver::kListAgain_s), "");
  EXPECT_THAT(keepers(), ElementsAre(IsEmpty(), ElementsAre("1"), IsEmpty(), IsEmpty()));
  fake.cached = {{77, 4}};
  fake.blocks.clear();  // of an older Spark
  fake.stages.push_back(stage(1, "ACTIVE", 1, {}));
  EXPECT_EQ(round(kNow + Driver::kListAgain_s + 2), "");
  EXPECT_EQ(driver.cached_problem(), "");
  EXPECT_THAT(keepers(), ElementsAre(ElementsAre("0"), ElementsAre("0"), ElementsAre("1"), ElementsAre("1")))
      << "where it is not known, who computed it is taken to keep it";
}

TEST_F(DriverTest, WhatNobodyKeepsAloneIsNotLostWithAnybody) {
  fake.stages = {stage(0, "COMPLETE", 4, {{"0"}, {"0"}, {"1"}, {"1"}})};
  fake.stages[0].through = {77};
  fake.jobs = {{0}};
  fake.cached = {{77, 2}};
  fake.blocks[77] = {{0, {"0", "1"}}, {1, {"1"}, 100}};
  fake.properties = {{"spark.shuffle.service.enabled", "true"},
                     {"spark.shuffle.service.fetch.rdd.enabled", "true"}};
  EXPECT_EQ(round(), "");
  EXPECT_FALSE(app().stages[0].cached) << "of the one there is a copy, the other is on the service's disk";
}

TEST_F(DriverTest, OfVeryManyKeptRddsTheFirstCount) {
  fake.stages = {stage(0, "COMPLETE", 4, std::vector<FakeTask>(4)),
                 stage(1, "COMPLETE", 4, std::vector<FakeTask>(4))};
  fake.jobs = {{0}, {1}};
  for (int rdd = 0; rdd < 1000; ++rdd) {
    fake.stages[rdd < 200 ? 0 : 1].through.push_back(rdd);
    fake.cached[rdd] = 1;
    fake.blocks[rdd] = {test::FakeBlock{0, {"0"}}};
  }
  EXPECT_EQ(round(), "");
  EXPECT_TRUE(app().stages[0].cached);
  EXPECT_FALSE(app().stages[1].cached);
}

TEST_F(DriverTest, WhereWhatIsKeptCannotBeReadWhoComputedItKeepsIt) {
  fake.stages = {stage(0, "COMPLETE", 4, std::vector<FakeTask>(4))};
  fake.stages[0].through = {77};
  fake.jobs = {{0}};
  fake.cached = {{77, 1}};
  fake.blocks[77] = {test::FakeBlock{0, {"9"}}};
  EXPECT_EQ(round(), "");
  EXPECT_THAT(app().stages[0].tasks[0].kept_by, ElementsAre("9"));
  fake.instead["/storage/rdd"] =
      R"([{"id":77,"numCachedPartitions":1,"partitions":[{"blockName":"rdd_77_0"}]}])";
  EXPECT_EQ(round(kNow + Driver::kListAgain_s), "");
  EXPECT_THAT(driver.cached_problem(), HasSubstr("/storage/rdd: executors is missing"));
  EXPECT_THAT(app().stages[0].tasks[0].kept_by, ElementsAre(app().stages[0].tasks[0].executor));
}

TEST_F(DriverTest, AFailedStageThatItsDriverForgetsStaysFailed) {
  fake.stages = {stage(0, "FAILED", 4, {{"0"}}), stage(1, "ACTIVE", 1, {})};
  fake.jobs = {{0}, {1}};
  fake.job_status[0] = "FAILED";
  EXPECT_EQ(round(), "");
  EXPECT_EQ(app().stages[0].partitions, 1) << "nobody waits for the rest";
  fake.stages.erase(fake.stages.begin());
  fake.jobs.erase(fake.jobs.begin());
  EXPECT_EQ(round(kNow + Driver::kListAgain_s), "");
  EXPECT_EQ(app().stages[0].id, 0);
  EXPECT_EQ(app().stages[0].partitions, 1);
}

TEST_F(DriverTest, WhatIsComputedAgainForALaterJobIsTheEarlierStages) {
  fake.stages = {stage(0, "COMPLETE", 2, {{"0", "SUCCESS", 1000}, {"1", "SUCCESS", 1000}}, 100),
                 stage(1, "COMPLETE", 1, {{}}), stage(2, "COMPLETE", 1, {{"2", "SUCCESS", 3000}}, 50),
                 stage(3, "ACTIVE", 2, {})};
  fake.stages[2].rdd = fake.stages[0].rdd = 77;
  fake.jobs = {{0, 1}, {2, 3}};
  EXPECT_EQ(round(), "");
  const model::SparkApp read = app();
  ASSERT_EQ(read.stages.size(), 3U);
  ASSERT_EQ(read.stages[0].tasks.size(), 2U);
  EXPECT_EQ(read.stages[0].tasks[0].executor, "2") << "its first partition was lost";
  EXPECT_EQ(read.stages[0].tasks[1].executor, "1");
  EXPECT_EQ(read.stages[2].id, 3);
  EXPECT_THAT(read.stages[2].parents, ElementsAre(0));
}

TEST_F(DriverTest, KnowsWhatOutlivesAnExecutor) {
  fake.properties = {{"spark.shuffle.service.enabled", "true"},
                     {"spark.decommission.enabled", "true"},
                     {"spark.storage.decommission.enabled", "true"},
                     {"spark.storage.decommission.shuffleBlocks.enabled", "true"}};
  EXPECT_EQ(round(), "");
  EXPECT_TRUE(app().shuffle_service);
  EXPECT_TRUE(app().migration);
}

TEST_F(DriverTest, OutputOfCelebornAndUniffleOutlivesItsExecutor) {
  using Properties = std::vector<std::pair<std::string, std::string>>;
  const auto outlives = [this](const Properties& properties) {
    fake.properties = properties;
    driver = Driver{{"127.0.0.1:4040"}};
    EXPECT_EQ(round(), "");
    return app().shuffle_service;
  };
  for (const char* manager : {"org.apache.spark.shuffle.celeborn.SparkShuffleManager",
                              "org.apache.spark.shuffle.RssShuffleManager"})
    EXPECT_TRUE(outlives({{"spark.shuffle.manager", manager}})) << manager;
  for (const char* manager :
       {"sort", "org.apache.spark.shuffle.DelegationRssShuffleManager", "com.example.MyShuffleManager"})
    EXPECT_FALSE(outlives({{"spark.shuffle.manager", manager}})) << manager;
  EXPECT_FALSE(outlives({{"spark.shuffle.manager", "org.apache.spark.shuffle.celeborn.SparkShuffleManager"},
                         {"spark.celeborn.client.spark.shuffle.fallback.policy", "ALWAYS"}}));
  const auto forced = [&](const char* value) {
    return outlives({{"spark.shuffle.manager", "org.apache.spark.shuffle.celeborn.SparkShuffleManager"},
                     {"spark.celeborn.client.spark.shuffle.forceFallback.enabled", value}});
  };
  EXPECT_FALSE(forced("true"));
  EXPECT_TRUE(forced("false"));
}

TEST_F(DriverTest, AStepOfTheClockHidesNoApplication) {
  fake.started_ms = -5;
  fake.stages = {
      stage(0, "COMPLETE", 3, {{"0", "SUCCESS", 2000}, {"1", "SUCCESS", -7000}, {"1", "SUCCESS", 4000}}),
      stage(1, "ACTIVE", 2, {{"0", "RUNNING", -9000}, {"1", "RUNNING", 500}})};
  EXPECT_EQ(round(), "");
  const model::SparkApp read = app(kNow + 30);
  EXPECT_DOUBLE_EQ(read.calculated_time_s, 30) << "since its first answer";
  ASSERT_EQ(read.stages.size(), 2U);
  ASSERT_EQ(read.stages[0].tasks.size(), 3U);
  EXPECT_DOUBLE_EQ(read.stages[0].tasks[1].duration_s, 3) << "as the other tasks of its stage";
  ASSERT_EQ(read.running.size(), 1U);
  EXPECT_EQ(read.running[0].executor, "1");
}

TEST_F(DriverTest, SumsOfHugeFiguresStayWithinASnapshotsLimits) {
  fake.stages = {stage(0, "FAILED", 1, {{"0"}}, model::kMaxBytes)};
  FakeStage again = stage(0, "ACTIVE", 1, {}, model::kMaxBytes);
  again.attempt = 1;
  fake.stages.push_back(again);
  EXPECT_EQ(round(), "");
  EXPECT_EQ(app().stages[0].shuffle_write_bytes, model::kMaxBytes);
}

TEST_F(DriverTest, BlocksOfTheShuffleMoveByDefaultSinceSpark34) {
  using Properties = std::vector<std::pair<std::string, std::string>>;
  const auto moves = [this](const std::string& version, const Properties& properties) {
    fake.version = version;
    fake.properties = properties;
    driver = Driver{{"127.0.0.1:4040"}};
    EXPECT_EQ(round(), "");
    return app().migration;
  };
  const Properties on{{"spark.decommission.enabled", "true"}, {"spark.storage.decommission.enabled", "true"}};
  for (const char* version : {"3.4.0", "3.10.1", "4.0.0-preview1", "3.5.1-amzn-0"})
    EXPECT_TRUE(moves(version, on)) << version;
  for (const char* version : {"3.3.2", "3.1.1", "2.4.8", "unknown", "3", "3.x", "-"})
    EXPECT_FALSE(moves(version, on)) << version;
  EXPECT_FALSE(moves("3.5.3", {on[0]})) << "no blocks move at all";
  Properties said = on;
  said.emplace_back("spark.storage.decommission.shuffleBlocks.enabled", "false");
  EXPECT_FALSE(moves("3.5.3", said));
  said.back().second = "true";
  EXPECT_TRUE(moves("3.3.2", said));
}

TEST_F(DriverTest, ReadsFinishedStagesOnceAndOfTheOthersWhatIsNew) {
  fake.stages = {stage(0, "COMPLETE", 300, std::vector<FakeTask>(300)), stage(1, "ACTIVE", 2000, {{}, {}})};
  EXPECT_EQ(round(), "");
  EXPECT_EQ(app().stages[0].tasks.size(), 300U);
  EXPECT_EQ(fake.tasks_given, 302U);
  for (int i = 0; i < 3; ++i) fake.stages[1].list.emplace_back();
  EXPECT_EQ(round(kNow + 2), "");
  EXPECT_EQ(fake.tasks_given, 305U);
  EXPECT_EQ(app().stages[1].tasks.size(), 5U);
  fake.stages[1].list.resize(2000);
  fake.stages[1].status = "COMPLETE";
  EXPECT_EQ(round(kNow + 4), "");
  EXPECT_EQ(app().stages[1].tasks.size(), 2000U);
  const std::size_t given = fake.tasks_given;
  EXPECT_EQ(round(kNow + 6), "");
  EXPECT_EQ(fake.tasks_given, given);
}

TEST_F(DriverTest, ALargeStageCostsAFewPagesARound) {
  fake.stages = {stage(0, "COMPLETE", 10'000, std::vector<FakeTask>(10'000))};
  int rounds = 0;
  while (!driver.app(kNow) && rounds < 100) {
    fake.asked.clear();
    EXPECT_EQ(round(kNow + 2 * rounds++), "");
    EXPECT_LE(pages(), static_cast<std::size_t>(Driver::kPagesPerRound));
  }
  EXPECT_EQ(rounds, 5);
  EXPECT_EQ(app().stages[0].tasks.size(), 10'000U);
  EXPECT_EQ(fake.tasks_given, 10'000U);
}

TEST_F(DriverTest, ATaskThatTakesLongHidesNoOthersAndHasThemNotReadAgain) {
  fake.stages = {stage(0, "ACTIVE", 9000, std::vector<FakeTask>(2000))};
  fake.stages[0].list[0].status = "RUNNING";
  EXPECT_EQ(round(), "");
  EXPECT_EQ(app().stages[0].tasks.size(), 1999U);
  fake.stages[0].list.resize(2100);
  fake.tasks_given = 0;
  EXPECT_EQ(round(kNow + 2), "");
  EXPECT_EQ(app().stages[0].tasks.size(), 2099U);
  EXPECT_LT(fake.tasks_given, 600U);
  fake.stages[0].list[0].status = "SUCCESS";
  fake.stages[0].status = "COMPLETE";
  fake.stages[0].tasks = 2100;
  EXPECT_EQ(round(kNow + 4), "");
  EXPECT_EQ(app().stages[0].tasks.size(), 2100U);
  EXPECT_THAT(app().running, IsEmpty());
}

TEST_F(DriverTest, AStageThatIsTriedAgainIsOneStage) {
  fake.stages = {stage(0, "FAILED", 4, {{"0"}, {"0"}, {"1", "FAILED"}, {"1", "KILLED"}}, 100)};
  FakeStage again = stage(0, "ACTIVE", 2, {}, 50);
  again.attempt = 1;
  fake.stages.push_back(again);
  EXPECT_EQ(round(), "");
  ASSERT_EQ(app().stages.size(), 1U);
  EXPECT_EQ(app().stages[0].partitions, 4);
  EXPECT_EQ(app().stages[0].tasks.size(), 2U);
  EXPECT_EQ(app().stages[0].shuffle_write_bytes, 150U);
}

TEST_F(DriverTest, WhatARetryIsAtIsNotDone) {
  fake.stages = {stage(0, "COMPLETE", 3, {{"0"}, {"1"}, {"1"}}, 100)};
  FakeStage again = stage(0, "ACTIVE", 2, {{"0", "RUNNING"}, {"0", "SUCCESS"}, {"2", "RUNNING"}}, 50);
  again.attempt = 1;
  again.list[0].partition = 1;
  again.list[1].partition = 2;
  again.list[2].partition = 2;  // a copy of what is done
  fake.stages.push_back(again);
  fake.jobs = {{0}};
  EXPECT_EQ(round(), "");
  ASSERT_EQ(app().stages.size(), 1U);
  EXPECT_THAT(app().stages[0].tasks, ElementsAre(model::SparkTask{"0", 0, 1}, model::SparkTask{"0", 0, 1}));
  EXPECT_EQ(app().stages[0].partitions, 3);
}

TEST_F(DriverTest, WhatALaterJobIsComputingAgainIsNotDone) {
  fake.stages = {stage(0, "COMPLETE", 2, {{"0"}, {"1"}}, 100), stage(1, "COMPLETE", 1, {{}}),
                 stage(2, "ACTIVE", 1, {{"2", "RUNNING"}}, 50), stage(3, "PENDING", 2, {})};
  fake.stages[2].rdd = fake.stages[0].rdd = 77;
  fake.jobs = {{0, 1}, {2, 3}};
  EXPECT_EQ(round(), "");
  ASSERT_EQ(app().stages.size(), 3U);
  EXPECT_THAT(app().stages[0].tasks, ElementsAre(model::SparkTask{"1", 0, 1}));
}

TEST_F(DriverTest, StagesOfAJobThatFailedAreWaitedForByNobody) {
  fake.stages = {stage(0, "COMPLETE", 1, {{}}, 9), stage(1, "FAILED", 4, {{}, {"0", "KILLED"}}),
                 stage(2, "FAILED", 4, {{"0", "KILLED"}})};
  fake.jobs = {{0, 1, 2}};
  EXPECT_EQ(round(), "");
  EXPECT_EQ(app().stages.size(), 3U);
  EXPECT_EQ(app().stages[1].partitions, 4) << "as long as the job goes on, it may be tried again";
  EXPECT_DOUBLE_EQ(driver.progress()->fraction, 2.0 / 10);
  fake.job_status[0] = "FAILED";
  EXPECT_EQ(round(kNow + Driver::kListAgain_s), "");
  ASSERT_EQ(app().stages.size(), 2U);
  EXPECT_EQ(app().stages[1].partitions, 1);
  EXPECT_EQ(app().stages[1].tasks.size(), 1U);
  EXPECT_EQ(app().stages[1].job, 0);
  EXPECT_EQ(driver.progress()->fraction, 2.0 / 3);
}

TEST_F(DriverTest, AnAttemptOfTheApplicationIsPartOfItsAddress) {
  fake.attempt = "2";
  fake.id = "application_1_0001";
  EXPECT_EQ(round(), "");
  EXPECT_THAT(fake.asked, Contains("/environment"));
}

TEST_F(DriverTest, ListsAllStagesOnlyWhereTheActiveOnesChangedOrAfterAWhile) {
  const auto listed = [this] {
    const auto count = std::count(fake.asked.begin(), fake.asked.end(), "/stages");
    fake.asked.clear();
    return count;
  };
  fake.stages = {stage(0, "ACTIVE", 1, {{"0", "RUNNING"}})};
  EXPECT_EQ(round(), "");
  EXPECT_EQ(listed(), 1);
  EXPECT_EQ(round(kNow + 2), "");
  EXPECT_EQ(listed(), 0);
  fake.stages[0].status = "COMPLETE";
  fake.stages[0].list[0].status = "SUCCESS";
  EXPECT_EQ(round(kNow + 4), "");
  EXPECT_EQ(listed(), 1);
  EXPECT_EQ(round(kNow + 4 + Driver::kListAgain_s), "");
  EXPECT_EQ(listed(), 1);
}

TEST_F(DriverTest, AStageThatTheDriverForgotIsOver) {
  fake.stages = {stage(0, "ACTIVE", 2, {{}, {"0", "RUNNING"}}), stage(1, "PENDING", 2, {})};
  EXPECT_EQ(round(), "");
  fake.stages.clear();
  EXPECT_EQ(round(kNow + 2), "");
  ASSERT_EQ(app().stages.size(), 1U);
  EXPECT_THAT(app().running, IsEmpty());
  fake.asked.clear();
  EXPECT_EQ(round(kNow + 4), "");
  EXPECT_THAT(fake.asked, ElementsAre("/stages?status=active"));
}

TEST_F(DriverTest, LooksForItsServerAmongAllEndpoints) {
  Driver many{{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:4040"}};
  std::vector<std::string> hosts;
  const auto done = many.read(
      [&](const std::string& url) -> model::Result<std::string> {
        hosts.push_back(url.substr(7, url.find('/', 7) - 7));
        if (hosts.back() == "127.0.0.1:1") return model::fail(model::ErrorKind::io, "no HTTP");
        if (hosts.back() == "127.0.0.1:2") return std::string("[]");
        return fake.get(url);
      },
      kNow);
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_EQ(many.app_id(), fake.id);
  EXPECT_EQ(hosts.back(), "127.0.0.1:4040");
}

TEST_F(DriverTest, IsFoundBehindOneThatRefuses) {
  Driver many{{"127.0.0.1:1", "127.0.0.1:4040"}};
  const Get get = [&](const std::string& url) -> model::Result<std::string> {
    if (url.starts_with("http://127.0.0.1:1/")) return model::fail(model::ErrorKind::refused, "status 404");
    return fake.get(url);
  };
  EXPECT_TRUE(many.read(get, kNow));
  EXPECT_EQ(many.app_id(), fake.id);
}

TEST_F(DriverTest, ASearchThatIsToPauseGoesOnWhereItWas) {
  Driver many{{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:4040"}};
  std::vector<std::string> asked;
  const Get get = [&](const std::string& url) -> model::Result<std::string> {
    asked.push_back(url.substr(7, url.find('/', 7) - 7));
    if (asked.back() == "127.0.0.1:1") return model::fail(model::ErrorKind::refused, "status 403");
    if (asked.back() == "127.0.0.1:2") return model::fail(model::ErrorKind::gone, "nobody");
    return model::fail(model::ErrorKind::gone, "nobody yet");
  };
  const auto over = [] { return true; };
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(many.read(get, kNow, {}, over));
    EXPECT_TRUE(many.searching());
  }
  const auto end = many.read(get, kNow, {}, over);
  ASSERT_FALSE(end);
  EXPECT_FALSE(many.searching());
  EXPECT_THAT(end.error().message(), HasSubstr("status 403")) << "which tells more than that nobody is there";
  EXPECT_THAT(asked, ElementsAre("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:4040"));
}

TEST_F(DriverTest, ATurnThatIsOverEndsAfterAPage) {
  fake.stages = {stage(0, "COMPLETE", 600, std::vector<FakeTask>(600))};
  const Get get = [this](const std::string& url) { return fake.get(url); };
  int rounds = 0;
  for (; !driver.app(kNow) && rounds < 10; ++rounds) {
    fake.asked.clear();
    EXPECT_TRUE(driver.read(get, kNow + rounds, {}, [] { return true; }));
    EXPECT_EQ(pages(), 1U);
  }
  EXPECT_EQ(rounds, 3);
  EXPECT_EQ(app().stages[0].tasks.size(), 600U);
}

TEST_F(DriverTest, SaysWhatIsInItsWay) {
  Driver nowhere{{}};
  const auto none = nowhere.read([this](const std::string& url) { return fake.get(url); }, kNow);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message(), HasSubstr("found no application at the ports of the driver"));
  const auto forbidden = driver.read(
      [](const std::string& url) -> model::Result<std::string> {
        return model::fail(model::ErrorKind::refused, "GET " + url + ": status 403");
      },
      kNow);
  ASSERT_FALSE(forbidden);
  EXPECT_THAT(forbidden.error().message(), HasSubstr("status 403"));
}

TEST_F(DriverTest, ALiarIsFoundOutByNameAndWhatWasReadStays) {
  fake.stages = {stage(0, "ACTIVE", 1, {{}})};
  EXPECT_EQ(round(), "");
  for (const char* lie : {"", "<html>", "{}", "[1]", "[[]]", R"([{"status":"ACTIVE"}])",
                          R"([{"status":"ACTIVE","stageId":-1,"numTasks":1}])",
                          R"([{"status":"ACTIVE","stageId":"0","numTasks":1}])",
                          R"([{"status":7,"stageId":0,"numTasks":1}])"}) {
    fake.instead["/stages"] = lie;
    EXPECT_THAT(round(kNow + 2), HasSubstr("/stages?status=active: ")) << lie;
    EXPECT_EQ(app().stages[0].tasks.size(), 1U);
  }
  fake.instead.clear();
  EXPECT_EQ(round(kNow + 4), "");
}

TEST_F(DriverTest, MoreTasksThanAPageHoldsAreNotTaken) {
  fake.stages = {stage(0, "COMPLETE", 1'000'000, {})};
  std::string page = "[";
  for (int i = 0; i < 1000; ++i) {
    page += i > 0 ? "," : "";
    page += R"({"status":"SUCCESS","executorId":"0","index":)" + std::to_string(i) + "}";
  }
  fake.instead["/stages/0/0/taskList"] = page + "]";
  std::string problem;
  for (int i = 0; i < 200 && problem.empty(); ++i) problem = round(kNow + i);
  EXPECT_THAT(problem, HasSubstr("more than 100000 tasks"));
  EXPECT_FALSE(driver.app(kNow));
  EXPECT_LT(driver.bytes(), 100'000U) << "and they are forgotten";
}

TEST_F(DriverTest, AsksForRoomAndForgetsEverythingWhereThereIsNone) {
  fake.stages = {stage(0, "COMPLETE", 2000, std::vector<FakeTask>(2000))};
  std::size_t most = 0;
  std::size_t limit = std::size_t{1} << 30;
  const auto read = [&](double now) {
    return driver.read([this](const std::string& url) { return fake.get(url); }, now, {},
                       [] { return false; },
                       [&](std::size_t bytes) -> model::Result<void> {
                         most = std::max(most, bytes);
                         if (bytes <= limit) return {};
                         return model::fail(model::ErrorKind::refused, "no room");
                       });
  };
  ASSERT_TRUE(read(kNow));
  // What its tasks take here and in all copies.
  EXPECT_GE(most, 2000 * (sizeof(RestTask) + Driver::kCopies * sizeof(model::SparkTask)));
  EXPECT_EQ(most, driver.bytes());
  EXPECT_TRUE(driver.caught_up());
  limit = most / 2;
  driver.forget();
  const auto refused = read(kNow + 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "no room");
  EXPECT_FALSE(driver.app(kNow));
  EXPECT_FALSE(driver.caught_up());
  EXPECT_LT(driver.bytes(), 10'000U);
  EXPECT_EQ(driver.app_id(), fake.id) << "it is known whose driver it is";
  limit = most;
  ASSERT_TRUE(read(kNow + 4));
  EXPECT_EQ(app(kNow + 4).stages[0].tasks.size(), 2000U);
}

TEST_F(DriverTest, OfVeryManyKeptRddsOfAStageSomeNameTheirKeepers) {
  fake.stages = {stage(0, "COMPLETE", 1, {{"0"}})};
  fake.rdd_partitions = 1;
  for (int rdd = 100; rdd < 100 + 3 * static_cast<int>(Driver::kMostKeepers); ++rdd) {
    fake.stages[0].through.push_back(rdd);
    fake.cached[rdd] = 1;
    fake.blocks[rdd] = {{.partition = 0, .executors = {std::to_string(rdd)}, .disk = 0}};
  }
  EXPECT_EQ(round(), "");
  EXPECT_EQ(app().stages[0].tasks[0].kept_by.size(), Driver::kMostKeepers);
}

TEST_F(DriverTest, AnApplicationThatRunsForLongIsFollowedOn) {
  // More tasks in all than are kept of one application, of stages that the driver itself forgets.
  constexpr int kStages = 500;
  constexpr int kAtATime = 100;
  constexpr int kTasks = Driver::kPageTasks - 1;
  static_assert(kStages * std::size_t{kTasks} > Driver::kMostTasks);
  double now = kNow;
  for (int first = 0; first < kStages; first += kAtATime) {
    fake.stages.clear();
    for (int id = first; id < first + kAtATime; ++id)
      fake.stages.push_back(stage(id, "COMPLETE", kTasks, std::vector<FakeTask>(kTasks)));
    now += Driver::kListAgain_s;
    for (int pages = 0; pages < kAtATime; pages += Driver::kPagesPerRound) ASSERT_EQ(round(now += 0.1), "");
  }
  const auto stages = app(now).stages;
  EXPECT_EQ(stages.back().id, kStages - 1);
  EXPECT_EQ(stages.back().tasks.size(), std::size_t{kTasks});
  EXPECT_GT(stages.front().id, 0) << "the oldest are forgotten";
  constexpr double kAll = kStages * double{kTasks};
  EXPECT_DOUBLE_EQ(driver.progress()->fraction, kAll / (kAll + 1)) << "but not that they were done";
}

TEST_F(DriverTest, PartitionsBeyondTheStageAreNoneOfIt) {
  fake.stages = {stage(0, "COMPLETE", 1, {{}, {}, {}})};
  EXPECT_EQ(round(), "");
  EXPECT_EQ(app().stages[0].tasks.size(), 1U);
}

}  // namespace
}  // namespace berth::spark
