// SPDX-License-Identifier: Apache-2.0
// The progress of an application, and what its event log adds.
#include "tests/unit/spark/sparkd/driver_fixture.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::spark {
namespace {

using test::FakeStage;
using test::FakeTask;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LoggingDriverTest : public DriverTest {
 protected:
  LoggingDriverTest() {
    std::string name = (std::filesystem::temp_directory_path() / "berth-events-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    directory = name;
    fake.properties = {{"spark.eventLog.enabled", "true"}, {"spark.eventLog.dir", "file://" + name}};
    fake.stages = {stage(0, "COMPLETE", 1, {{}}, 9), stage(1, "COMPLETE", 1, {{}}, 9),
                   stage(2, "ACTIVE", 1, {})};
    fake.jobs = {{0, 1, 2}};
  }
  ~LoggingDriverTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  void read(double now = kNow) {
    EXPECT_TRUE(logging.read([this](const std::string& url) { return fake.get(url); }, now));
  }
  std::vector<int> parents_of_last() {
    const auto found = logging.app(kNow);
    return found ? found->stages.back().parents : std::vector<int>{-1};
  }
  static model::Result<LogFile> open_plainly(const std::filesystem::path& path) {
    os::FileDescriptor opened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened) return model::fail(model::Error::from_errno(errno, path.string()));
    return LogFile{.file = std::move(opened), .parts = {}};
  }

  std::filesystem::path directory;
  Driver logging{{"127.0.0.1:4040"}, geteuid(), open_plainly};
};

TEST_F(LoggingDriverTest, TakesWhatStagesReadFromItsEventLog) {
  std::ofstream log(directory / (fake.id + ".inprogress"));
  read();
  EXPECT_THAT(parents_of_last(), ElementsAre(1)) << "the order, until the log says more";
  EXPECT_EQ(logging.log_problem(), "");
  log << R"({"Event":"SparkListenerJobStart","Job ID":0,"Stage Infos":[)"
      << R"({"Stage ID":2,"Parent IDs":[0,1]},{"Stage ID":1,"Parent IDs":[]},{"Stage ID":0,"Parent IDs":[]}]})"
      << std::endl;
  read(kNow + 2);
  EXPECT_THAT(parents_of_last(), ElementsAre(0, 1));
  EXPECT_THAT(logging.app(kNow)->stages[1].parents, IsEmpty());
}

TEST_F(LoggingDriverTest, SaysWhyItsEventLogIsNotReadAndIsReadWithoutIt) {
  read();
  EXPECT_THAT(logging.log_problem(), HasSubstr("does not exist, or is hidden from berthd"));
  std::ofstream(directory / (fake.id + ".zstd")) << "x";
  read(kNow + 2);
  EXPECT_THAT(logging.log_problem(), HasSubstr("does not exist, or is hidden from berthd"))
      << "it is not looked for in every round";
  read(kNow + 2 + Driver::kListAgain_s);
  EXPECT_THAT(logging.log_problem(), HasSubstr("compressed"));
  EXPECT_THAT(parents_of_last(), ElementsAre(1));
  fake.properties[1].second = "hdfs://nn/logs";
  logging = Driver({"127.0.0.1:4040"}, geteuid(), open_plainly);
  read();
  EXPECT_THAT(logging.log_problem(), HasSubstr("hdfs://nn/logs is not a directory of this host"));
}

class ProgressTest : public DriverTest {
 protected:
  // Counted now, or earlier.
  double fraction(double now = kNow) {
    EXPECT_EQ(round(now), "");
    EXPECT_TRUE(driver.progress().has_value());
    return driver.progress() ? driver.progress()->fraction : -1;
  }
};

TEST_F(ProgressTest, IsWhatIsDoneOfAllTasksThatAreKnown) {
  EXPECT_FALSE(driver.progress());
  fake.stages = {stage(0, "COMPLETE", 4, {{}, {}, {}, {}}),
                 stage(1, "ACTIVE", 3, {{}, {}, {"0", "RUNNING"}, {"0", "FAILED"}}),
                 stage(2, "PENDING", 2, {}), stage(3, "SKIPPED", 50, {})};
  EXPECT_DOUBLE_EQ(fraction(), 6.0 / 10);
  EXPECT_EQ(driver.progress()->time, kNow);
}

TEST_F(ProgressTest, IsNeverOneWhileTheApplicationRuns) {
  fake.stages = {stage(0, "COMPLETE", 1, {{}})};
  EXPECT_DOUBLE_EQ(fraction(), 0.5);
}

TEST_F(ProgressTest, FallsAtOnceWhereStagesAppear) {
  fake.stages = {stage(0, "COMPLETE", 9, std::vector<FakeTask>(9))};
  EXPECT_DOUBLE_EQ(fraction(), 0.9);
  fake.stages.push_back(stage(1, "ACTIVE", 10, {}));
  EXPECT_DOUBLE_EQ(fraction(kNow + 0.1), 0.45);
}

TEST_F(ProgressTest, FallsWhereAStageIsDoneAgainInPart) {
  fake.stages = {stage(0, "COMPLETE", 9, std::vector<FakeTask>(9))};
  EXPECT_DOUBLE_EQ(fraction(), 0.9);
  FakeStage again = stage(0, "ACTIVE", 3, {{}});
  again.attempt = 1;
  fake.stages.push_back(again);
  EXPECT_DOUBLE_EQ(fraction(kNow + 2), 0.7);
}

TEST_F(ProgressTest, FallsWhereALaterJobDoesAgainWhatWasLost) {
  fake.stages = {stage(0, "COMPLETE", 8, std::vector<FakeTask>(8), 100), stage(1, "COMPLETE", 1, {{}})};
  fake.jobs = {{0, 1}};
  EXPECT_DOUBLE_EQ(fraction(), 0.9);
  fake.stages.push_back(stage(2, "ACTIVE", 3, {{}, {"1", "RUNNING"}}, 40));
  fake.stages.push_back(stage(3, "PENDING", 10, {}));
  fake.stages[2].rdd = fake.stages[0].rdd = 77;
  fake.jobs.push_back({2, 3});
  EXPECT_DOUBLE_EQ(fraction(kNow + 2), 7.0 / 20) << "two of the eight are missing";
  fake.stages[2].status = "COMPLETE";
  fake.stages[2].list = std::vector<FakeTask>(3);
  fake.stages[3].status = "ACTIVE";
  EXPECT_DOUBLE_EQ(fraction(kNow + 4), 9.0 / 20);
}

TEST_F(ProgressTest, IsCountedAgainOnceATasksUsualTimeIsOver) {
  fake.stages = {stage(0, "ACTIVE", 9, {{"0", "SUCCESS", 10'000}, {"1", "RUNNING"}})};
  EXPECT_DOUBLE_EQ(fraction(), 0.1);
  // Of the same wave.
  fake.stages[0].list[1] = {"1", "SUCCESS", 10'000};
  EXPECT_DOUBLE_EQ(fraction(kNow + 2), 0.1);
  EXPECT_DOUBLE_EQ(fraction(kNow + 11), 0.2);
  EXPECT_EQ(driver.progress()->time, kNow + 11);
  // Nothing new is no report.
  EXPECT_DOUBLE_EQ(fraction(kNow + 60), 0.2);
  EXPECT_EQ(driver.progress()->time, kNow + 11);
  // A clock that was set back does not silence it.
  EXPECT_DOUBLE_EQ(fraction(kNow - 1000), 0.2);
  EXPECT_EQ(driver.progress()->time, kNow - 1000);
}

}  // namespace
}  // namespace berth::spark
