// SPDX-License-Identifier: Apache-2.0
#include "spark/driver.h"

#include "tests/unit/spark/fake_driver.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using test::FakeDriver;
using test::FakeStage;
using test::FakeTask;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kNow = 1'790'000'060;

class DriverTest : public ::testing::Test {
 protected:
  // The error of a round, empty where it went well.
  std::string round(double now = kNow) {
    const auto done = driver.read([this](const std::string& url) { return fake.get(url); }, now);
    return done ? "" : done.error().message();
  }
  model::SparkApp app(double now = kNow) {
    const auto read = driver.app(now);
    EXPECT_TRUE(read.has_value());
    return read.value_or(model::SparkApp());
  }
  std::size_t pages() const {
    return static_cast<std::size_t>(
        std::count_if(fake.asked.begin(), fake.asked.end(),
                      [](const std::string& path) { return path.find("taskList") != std::string::npos; }));
  }
  static FakeStage stage(int id, std::string status, int tasks, std::vector<FakeTask> list,
                         std::uint64_t shuffle_write = 0) {
    return {.id = id,
            .status = std::move(status),
            .tasks = tasks,
            .shuffle_write = shuffle_write,
            .list = std::move(list)};
  }

  FakeDriver fake;
  Driver driver{{"127.0.0.1:4040"}};
};

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

TEST_F(DriverTest, KnowsWhatOutlivesAnExecutor) {
  fake.properties = {{"spark.shuffle.service.enabled", "true"},
                     {"spark.decommission.enabled", "true"},
                     {"spark.storage.decommission.enabled", "true"},
                     {"spark.storage.decommission.shuffleBlocks.enabled", "true"}};
  EXPECT_EQ(round(), "");
  EXPECT_TRUE(app().shuffle_service);
  EXPECT_TRUE(app().migration);
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

TEST_F(DriverTest, SaysWhatIsInItsWay) {
  Driver nowhere{{}};
  const auto none = nowhere.read([this](const std::string& url) { return fake.get(url); }, kNow);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message(), HasSubstr("no application is to be found"));
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
                          R"([{"status":"ACTIVE","stageId":0,"numTasks":1e300}])",
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
  EXPECT_THAT(problem, HasSubstr("more than 200000 tasks"));
  EXPECT_FALSE(driver.app(kNow));
}

TEST_F(DriverTest, PartitionsBeyondTheStageAreNoneOfIt) {
  fake.stages = {stage(0, "COMPLETE", 1, {{}, {}, {}})};
  EXPECT_EQ(round(), "");
  EXPECT_EQ(app().stages[0].tasks.size(), 1U);
}

}  // namespace
}  // namespace berth::spark
