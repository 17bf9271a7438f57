// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/rest.h"

#include "model/json.h"
#include "spark/sparkd/json_reader.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename T>
std::string problem(const model::Result<T>& result) {
  return result ? "none" : result.error().message();
}

TEST(RestApplications, AreThoseThatRun) {
  const auto applications = parse_applications(
      R"([{"id":"a","attempts":[{"completed":false,"startTimeEpoch":1500}]},
          {"id":"b","attempts":[{"completed":true,"startTimeEpoch":1500}]},
          {"id":"c","attempts":[{"attemptId":"2","startTimeEpoch":2500,"appSparkVersion":"3.5.3"},{"attemptId":"1","completed":true}]}])");
  ASSERT_TRUE(applications) << problem(applications);
  ASSERT_EQ(applications->size(), 2U);
  EXPECT_EQ((*applications)[0].id, "a");
  EXPECT_EQ((*applications)[0].started, 1.5);
  EXPECT_EQ((*applications)[0].version, "");
  EXPECT_EQ((*applications)[1].attempt, "2");
  EXPECT_EQ((*applications)[1].version, "3.5.3");
}

TEST(RestApplications, WithoutWhatIsNeededAreAnError) {
  EXPECT_EQ(problem(parse_applications("nonsense")), "the answer is not JSON");
  EXPECT_EQ(problem(parse_applications("{}")), "the list of applications is not an array");
  EXPECT_EQ(problem(parse_applications(R"([{"attempts":[]}])")), "id is missing, or not a name");
  EXPECT_EQ(problem(parse_applications(R"([{"id":"a\u0000b"}])")), "id is missing, or not a name");
  EXPECT_EQ(problem(parse_applications(R"([{"id":"a"}])")), "attempts is missing, or not a list");
  EXPECT_EQ(problem(parse_applications(R"([{"id":"a","attempts":[5]}])")), "an element is not an object");
}

TEST(RestApplications, AreKnownWithoutAClockThatMakesSense) {
  for (const char* started : {"{}", R"({"startTimeEpoch":-5})", R"({"startTimeEpoch":"NaN"})"}) {
    const auto applications = parse_applications(R"([{"id":"a","attempts":[)" + std::string(started) + "]}]");
    ASSERT_TRUE(applications) << problem(applications);
    ASSERT_EQ(applications->size(), 1U);
    EXPECT_EQ(applications->front().started, std::nullopt) << started;
  }
}

model::Result<std::vector<RestTask>> tasks_of(const std::string& text) {
  Names executors;
  return parse_tasks(text, 1000, executors);
}

model::Result<std::vector<RestRdd>> cached_of(const std::string& text) {
  Names executors;
  return parse_cached(text, executors);
}

TEST(RestTasks, HaveTheirRunTimeAndEverythingTheyRead) {
  const auto tasks = tasks_of(
      R"([{"index":4,"partitionId":7,"status":"SUCCESS","executorId":"3","duration":1300,
           "taskMetrics":{"executorRunTime":1200,"inputMetrics":{"bytesRead":5},
                          "shuffleReadMetrics":{"remoteBytesRead":6,"localBytesRead":7}}},
          {"index":4,"partitionId":-1,"status":"RUNNING","executorId":"driver","duration":300},
          {"index":5,"status":"SUCCESS","executorId":"3","duration":900},
          {"index":6,"status":"GET RESULT","executorId":"3","taskMetrics":null},
          {"index":7,"status":"KILLED","executorId":"3"}])");
  ASSERT_TRUE(tasks) << problem(tasks);
  ASSERT_EQ(tasks->size(), 5U);
  EXPECT_EQ((*tasks)[0].partition, 7);
  EXPECT_DOUBLE_EQ((*tasks)[0].run_s, 1.2);
  EXPECT_EQ((*tasks)[0].input_bytes, 18U);
  EXPECT_EQ((*tasks)[1].partition, 4);
  EXPECT_EQ((*tasks)[1].status, RestTask::Status::running);
  EXPECT_FALSE((*tasks)[1].finished);
  EXPECT_DOUBLE_EQ((*tasks)[2].run_s, 0.9) << "no metrics: the time that it took in all";
  EXPECT_FALSE((*tasks)[3].finished);
  EXPECT_TRUE((*tasks)[4].finished);
  EXPECT_EQ((*tasks)[4].status, RestTask::Status::other);
}

// After a step of the clock a driver tells negative durations for a while.
TEST(RestTasks, OneOddFigureHidesThatFigureAlone) {
  const auto task = [](const std::string& members) {
    const auto tasks = tasks_of(R"([{"status":"SUCCESS","executorId":"1","index":0,)" + members + "}]");
    EXPECT_TRUE(tasks) << members << ": " << problem(tasks);
    return tasks && tasks->size() == 1 ? tasks->front() : RestTask();
  };
  EXPECT_EQ(task(R"("duration":-300)").run_s, RestTask::kUntold);
  EXPECT_EQ(task(R"("duration":[])").run_s, RestTask::kUntold);
  EXPECT_EQ(task(R"("duration":900,"taskMetrics":{"executorRunTime":-1})").run_s, 0.9);
  EXPECT_EQ(task(R"("duration":900,"taskMetrics":{"executorRunTime":"NaN"})").run_s, 0.9);
  EXPECT_EQ(task(R"("duration":-1,"taskMetrics":{"executorRunTime":700})").run_s, 0.7);
  EXPECT_GT(task(R"("duration":1e300)").run_s, 1e9);
  EXPECT_EQ(task(R"("taskMetrics":{"inputMetrics":{"bytesRead":1e30}})").input_bytes, model::kMaxBytes);
  EXPECT_EQ(task(R"("taskMetrics":{"inputMetrics":{"bytesRead":-1}})").input_bytes, 0U) << "Spark's unknown";
  EXPECT_EQ(
      task(R"("taskMetrics":{"inputMetrics":{"bytesRead":"many"},"shuffleReadMetrics":{"localBytesRead":7}})")
          .input_bytes,
      7U);
}

TEST(RestStages, OneOddFigureHidesThatFigureAlone) {
  const auto stages = parse_stages(
      R"([{"status":"ACTIVE","stageId":1,"numTasks":4,"numCompletedIndices":-2,"shuffleWriteBytes":-9},
          {"status":"ACTIVE","stageId":2,"numTasks":1e300,"shuffleWriteBytes":1e300},
          {"status":"ACTIVE","stageId":3,"numTasks":-4}])");
  ASSERT_TRUE(stages) << problem(stages);
  ASSERT_EQ(stages->size(), 2U) << "a stage without a number of tasks counts as one without tasks";
  EXPECT_EQ((*stages)[0].completed, 0);
  EXPECT_EQ((*stages)[0].shuffle_write_bytes, 0U);
  EXPECT_GT((*stages)[1].tasks, 1'000'000);
  EXPECT_EQ((*stages)[1].shuffle_write_bytes, model::kMaxBytes);
  EXPECT_EQ(problem(parse_stages(R"([{"status":"ACTIVE","stageId":-1,"numTasks":4}])")),
            "stageId is out of range");
}

TEST(RestTasks, OfABrokenStructureAreAnError) {
  const auto with = [](const std::string& members) {
    return problem(tasks_of(R"([{"status":"SUCCESS","executorId":"1","index":0,)" + members + "}]"));
  };
  EXPECT_EQ(with(R"("taskMetrics":5)"), "taskMetrics is not an object");
  EXPECT_EQ(problem(tasks_of(R"([{"status":"SUCCESS","executorId":"1"}])")), "index is missing");
  EXPECT_EQ(problem(tasks_of(R"([{"status":"SUCCESS","index":0}])")), "executorId is missing, or not a name");
  EXPECT_EQ(problem(tasks_of("[null]")), "an element is not an object");
}

TEST(RestJobs, AreTheirStages) {
  const auto jobs = *parse_jobs(
      R"([{"jobId":4,"status":"RUNNING","stageIds":[3,1]},{"jobId":3,"status":"FAILED","stageIds":[]},{"stageIds":[2]}])");
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_THAT(jobs[0].stages, ElementsAre(1, 3));
  EXPECT_EQ(jobs[0].id, 4);
  EXPECT_FALSE(jobs[0].over);
  EXPECT_THAT(jobs[1].stages, IsEmpty());
  EXPECT_TRUE(jobs[1].over);
  EXPECT_EQ(jobs[2].id, -1);
  EXPECT_FALSE(jobs[2].over);
  EXPECT_EQ(parse_jobs(R"([{"jobId":[],"stageIds":[]}])")->front().id, -1);
  EXPECT_EQ(problem(parse_jobs(R"([{"jobId":1}])")), "stageIds is missing");
  EXPECT_EQ(problem(parse_jobs(R"([{"stageIds":[1.5]}])")), "stageIds has an element that is not an id");
  EXPECT_EQ(problem(parse_jobs(R"([{"stageIds":[99999999999]}])")),
            "stageIds has an element that is not an id");
}

TEST(RestCached, AreThoseOfWhichPartitionsAreKept) {
  EXPECT_THAT(
      *cached_of(
          R"([{"id":7,"numPartitions":4,"numCachedPartitions":2},{"id":8,"numCachedPartitions":0},{"id":9}])"),
      ElementsAre(RestRdd{.id = 7, .partitions = 4}));
  EXPECT_EQ(problem(cached_of(R"([{"numCachedPartitions":2}])")), "id is missing");
  EXPECT_THAT(*cached_of(R"([{"id":7,"numCachedPartitions":-1}])"), IsEmpty());
  EXPECT_EQ(
      cached_of(
          R"([{"id":7,"numCachedPartitions":-1,"partitions":[{"blockName":"rdd_7_0","executors":["1"]}]}])")
          ->size(),
      1U)
      << "the partitions tell it, too";
  EXPECT_EQ(problem(cached_of("{}")), "the list of RDDs is not an array");
}

TEST(RestCached, AreWhereTheirPartitionsAre) {
  Names executors;
  const auto cached = parse_cached(
      R"([{"id":7,"numCachedPartitions":2,"partitions":[{"blockName":"rdd_7_3","diskUsed":5,"executors":["0","driver"]},
                                                        {"blockName":"rdd_7_0","executors":["driver"]},
                                                        {"blockName":"rdd_7_1","executors":[]}]}])",
      executors);
  ASSERT_TRUE(cached) << problem(cached);
  ASSERT_EQ(cached->size(), 1U);
  EXPECT_THAT(*cached->front().blocks,
              ElementsAre(RestBlock{.partition = 3, .alone = {}, .on_disk = true},
                          RestBlock{.partition = 0, .alone = executors.number("driver"), .on_disk = false},
                          RestBlock{.partition = 1, .alone = {}, .on_disk = false}));
}

TEST(RestCached, OfALiarAreAnError) {
  const auto with = [](const std::string& partitions) {
    return problem(cached_of(R"([{"id":7,"numCachedPartitions":1,"partitions":)" + partitions + "}]"));
  };
  EXPECT_EQ(with("{}"), "partitions is not an array");
  EXPECT_EQ(with(R"([{"executors":[]}])"), "blockName is missing, or not a name");
  for (const char* name : {"rdd", "rdd_", "rdd_7_x", "rdd_7_-1", "rdd_7_3x", "rdd_7_99999999999"})
    EXPECT_EQ(with(R"([{"executors":[],"blockName":")" + std::string(name) + "\"}]"),
              "blockName names no partition");
  EXPECT_EQ(with(R"([{"blockName":"rdd_7_3"}])"), "executors is missing");
  EXPECT_EQ(with(R"([{"blockName":"rdd_7_3","executors":[7]}])"),
            "executors has an element that is not a name");
}

TEST(RestProperties, OnlyThoseThatAreAskedForAreKeptAndNoneIsLong) {
  const std::string longest(kMostPropertyBytes, 'x');
  const auto answer = [](const std::string& name, const std::string& value) {
    return R"({"sparkProperties":[[")" + name + R"(",")" + value + R"("]]})";
  };
  EXPECT_EQ(parse_properties(answer("a", longest), {"a"})->at("a"), longest);
  EXPECT_EQ(problem(parse_properties(answer("a", longest + "x"), {"a"})), "a is too long");
  EXPECT_TRUE(parse_properties(answer("b", longest + "x"), {"a"})->empty());
}

TEST(RestProperties, ArePairs) {
  EXPECT_EQ(parse_properties(R"({"sparkProperties":[["a","b"]]})", {"a"})->at("a"), "b");
  EXPECT_EQ(problem(parse_properties("{}", {"a"})), "sparkProperties is missing");
  EXPECT_EQ(problem(parse_properties("[]", {"a"})), "an element is not an object");
  EXPECT_EQ(problem(parse_properties(R"({"sparkProperties":[["a"]]})", {"a"})),
            "sparkProperties has an element that is not a pair of texts");
}

TEST(Rest, NamesAreShort) {
  const auto task = [](std::size_t length) {
    return R"([{"status":"SUCCESS","index":0,"executorId":")" + std::string(length, 'x') + "\"}]";
  };
  EXPECT_EQ(problem(tasks_of(task(kMostNameBytes))), "none");
  EXPECT_EQ(problem(tasks_of(task(kMostNameBytes + 1))), "executorId is missing, or not a name");
  const std::string id(kMostNameBytes + 1, 'x');
  EXPECT_EQ(problem(parse_applications(R"([{"id":")" + id + "\"}]")), "id is missing, or not a name");
}

// `element`, `count` times.
std::string list_of(const std::string& element, std::size_t count) {
  std::string list = "[";
  for (std::size_t i = 0; i < count; ++i) list += (i > 0 ? "," : "") + element;
  return list + "]";
}

TEST(Rest, ListsHaveALimit) {
  const std::string application = R"({"id":"a","attempts":[{"startTimeEpoch":1}]})";
  EXPECT_EQ(parse_applications(list_of(application, 50))->size(), 2U) << "a driver has one";
  const std::string stage = R"({"status":"ACTIVE","stageId":1,"numTasks":1})";
  EXPECT_EQ(parse_stages(list_of(stage, kMostStages))->size(), kMostStages);
  EXPECT_EQ(problem(parse_stages(list_of(stage, kMostStages + 1))), "the list of stages is too long");
  const std::string through =
      R"({"status":"ACTIVE","stageId":1,"numTasks":1,"rddIds":)" + list_of("7", 1000) + "}";
  EXPECT_EQ(problem(parse_stages(list_of(through, kMostRddIds / 1000 + 1))),
            "rddIds has too many elements in all");
  EXPECT_EQ(problem(parse_jobs(list_of(R"({"stageIds":[]})", kMostJobs + 1))),
            "the list of jobs is too long");
  const std::string job = R"({"stageIds":)" + list_of("7", 1000) + "}";
  EXPECT_EQ(problem(parse_jobs(list_of(job, kMostStagesOfJobs / 1000 + 1))),
            "stageIds has too many elements in all");
  const std::string block = R"({"blockName":"rdd_1_2","executors":["0"]})";
  EXPECT_EQ(problem(cached_of(R"([{"id":1,"partitions":)" + list_of(block, kMostBlocks + 1) + "}]")),
            "partitions has too many elements in all");
  const std::string rdd = R"({"id":1,"numCachedPartitions":1})";
  EXPECT_EQ(cached_of(list_of(rdd, kMostRdds + 1))->size(), kMostRdds);
}

TEST(Rest, ExecutorsHaveALimitInAll) {
  Names executors;
  for (int i = 0; !executors.full(); ++i) executors.number(std::to_string(i));
  EXPECT_EQ(problem(parse_tasks(R"([{"status":"SUCCESS","index":0,"executorId":"new"}])", 1, executors)),
            "executorId has too many values in all");
  EXPECT_EQ(problem(parse_cached(R"([{"id":1,"partitions":[{"blockName":"rdd_1_2","executors":["new"]}]}])",
                                 executors)),
            "executors has too many values in all");
}

TEST(Rest, NoPartOfAnAnswerIsLong) {
  const std::string longest(JsonReader::kMostTokenBytes - 10, 'x');
  EXPECT_EQ(problem(parse_stages(R"([{"details":")" + longest + R"(","status":7}])")),
            "status is missing, or not a name")
      << "it is passed over";
  for (const std::string& part : {"\"" + longest + "xxxxxxxxxx\"", std::string(longest.size() + 20, '1'),
                                  std::string(longest.size() + 20, ' ')})
    EXPECT_EQ(problem(parse_stages(R"([{"details":)" + part + "}]")),
              "the answer has a part that is too long");
  // An element that asks for more memory than any real one.
  const std::string ids = list_of("7", JsonReader::kMostElementBytes / 16);
  EXPECT_EQ(problem(parse_jobs(R"([{"stageIds":)" + ids + "}]")),
            "the answer has an element that is too large");
  EXPECT_EQ(problem(parse_jobs(R"([{"others":)" + ids + R"(,"stageIds":[7]}])")), "none");
}

TEST(Rest, OnlyTheNamedPartsAreKept) {
  JsonReader in;
  std::vector<std::string> seen;
  in.read(
      R"({"a":1,"b":{"a":2,"c":[{"a":3}]},"l":[{"a":{"b":4,"a":[5,{"z":6}]}},7],"a":[[8]],"z":{"l":[9]}})",
      {.members = {"a"}, .lists = {"l"}},
      [&](const std::string& list, const nlohmann::json& element) { seen.push_back(list + element.dump()); });
  EXPECT_FALSE(in.failed());
  EXPECT_THAT(seen, ElementsAre(R"(l{"a":{"a":[5,{}]}})", "l7"));
  EXPECT_EQ(in.root().dump(), R"({"a":[[8]],"l":[]})");
}

TEST(Rest, ManyNestedLevelsDoNoHarm) {
  EXPECT_EQ(problem(parse_stages(std::string(1'000'000, '['))), "the answer is nested too deeply");
  EXPECT_EQ(problem(parse_stages(R"(["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[["])")),
            "an element is not an object");
}

}  // namespace
}  // namespace berth::spark
