// SPDX-License-Identifier: Apache-2.0
#include "spark/sparkd/rest.h"

#include "model/bounds.h"
#include "model/json.h"
#include "model/number.h"
#include "spark/sparkd/json_reader.h"

#include <algorithm>
#include <utility>

namespace berth::spark {

namespace {

using nlohmann::json;
using Reader = JsonReader;

constexpr std::size_t kMostVersionBytes = 64;
constexpr double kMostMilliseconds = model::kLastTime_s * 1000;  // a snapshot takes no later time
const JsonParts kApplicationParts{
    .members = {"appSparkVersion", "attemptId", "attempts", "completed", "id", "startTimeEpoch"},
    .lists = {""}};
const JsonParts kStageParts{.members = {"attemptId", "numCompletedIndices", "numTasks", "rddIds",
                                        "shuffleWriteBytes", "stageId", "status"},
                            .lists = {""}};
const JsonParts kCachedParts{
    .members = {"blockName", "diskUsed", "executors", "id", "numCachedPartitions", "numPartitions"},
    .lists = {"", "partitions"}};
const JsonParts kJobParts{.members = {"jobId", "stageIds", "status"}, .lists = {""}};
const JsonParts kTaskParts{.members = {"bytesRead", "duration", "executorId", "executorRunTime", "index",
                                       "inputMetrics", "localBytesRead", "partitionId", "remoteBytesRead",
                                       "shuffleReadMetrics", "status", "taskMetrics"},
                           .lists = {""}};
const JsonParts kPropertyParts{.members = {}, .lists = {"sparkProperties"}};

// Reads a text that is one list.
template <typename Take>
void read_list(Reader& in, std::string_view text, const JsonParts& parts, const char* what, Take take) {
  in.read(text, parts, take);
  if (!in.failed()) in.array(in.root(), what);
}

}  // namespace

model::Result<std::vector<RestApplication>> parse_applications(std::string_view text) {
  constexpr std::size_t kMost = 2;
  Reader in;
  std::vector<RestApplication> applications;
  read_list(in, text, kApplicationParts, "the list of applications",
            [&](const std::string&, const json& element) {
              if (applications.size() == kMost) return;
              RestApplication application;
              application.id = in.name(element, "id");
              const json* attempts = in.failed() ? nullptr : in.member(element, "attempts");
              if (attempts == nullptr || !attempts->is_array() || attempts->empty()) {
                in.fail("attempts", "is missing, or not a list");
                return;
              }
              const json& last = attempts->front();  // newest first
              if (const json* attempt = in.member(last, "attemptId"); attempt != nullptr)
                application.attempt = in.name(last, "attemptId");
              if (const auto started_ms = in.figure(last, "startTimeEpoch", kMostMilliseconds))
                application.started = *started_ms / 1000;
              const json* version = in.member(last, "appSparkVersion");
              if (version != nullptr && version->is_string())
                application.version = version->get_ref<const std::string&>().substr(0, kMostVersionBytes);
              const json* completed = in.member(last, "completed");
              if (completed == nullptr || !completed->is_boolean() || !completed->get<bool>())
                applications.push_back(std::move(application));
            });
  return in.result(std::move(applications));
}

model::Result<std::vector<RestStage>> parse_stages(std::string_view text) {
  Reader in;
  std::vector<RestStage> stages;
  std::size_t rdd_ids = 0;
  read_list(in, text, kStageParts, "the list of stages", [&](const std::string&, const json& element) {
    const std::string status = in.name(element, "status");
    RestStage stage;
    stage.id = in.integer(element, "stageId");
    stage.attempt = in.integer(element, "attemptId", 0);
    stage.tasks = in.count(element, "numTasks").value_or(0);
    stage.completed = in.count(element, "numCompletedIndices").value_or(0);
    stage.shuffle_write_bytes = in.bytes(element, "shuffleWriteBytes");
    if (const json* rdds = in.member(element, "rddIds"); rdds != nullptr) {
      stage.rdds = in.integers(*rdds, "rddIds");
      if (!stage.rdds.empty()) stage.rdd = stage.rdds.front();
    }
    rdd_ids += stage.rdds.size();
    if (rdd_ids > kMostRddIds) in.fail("rddIds", "has too many elements in all");
    if (status == "ACTIVE") stage.status = RestStage::Status::active;
    if (status == "COMPLETE") stage.status = RestStage::Status::complete;
    if (status == "FAILED") stage.status = RestStage::Status::failed;
    if (status == "SKIPPED") stage.status = RestStage::Status::skipped;
    if (stage.tasks == 0) return;
    if (stages.size() == kMostStages) in.fail("the list of stages", "is too long");
    if (!in.failed()) stages.push_back(std::move(stage));
  });
  return in.result(std::move(stages));
}

namespace {

RestBlock read_block(Reader& in, const json& element, Names& names) {
  RestBlock block;
  const std::string name = in.name(element, "blockName");  // rdd_ID_PARTITION
  const std::size_t start = name.rfind('_') + 1;
  const auto partition = model::to_number<int>(std::string_view(name).substr(start));
  if (start == 0 || !partition || *partition < 0) in.fail("blockName", "names no partition");
  block.partition = partition.value_or(0);
  block.on_disk = in.bytes(element, "diskUsed") > 0;
  const json* executors = in.member(element, "executors");
  if (executors == nullptr || in.array(*executors, "executors") == nullptr) {
    in.fail("executors", "is missing");
    return block;
  }
  for (const json& executor : *executors) {
    if (executor.is_string() && is_name(executor.get_ref<const std::string&>())) continue;
    in.fail("executors", "has an element that is not a name");
    return block;
  }
  if (names.full()) in.fail("executors", "has too many values in all");
  if (!in.failed() && executors->size() == 1)
    block.alone = names.number(executors->front().get_ref<const std::string&>());
  return block;
}

}  // namespace

model::Result<std::vector<RestRdd>> parse_cached(std::string_view text, Names& executors) {
  Reader in;
  std::vector<RestRdd> rdds;
  std::vector<RestBlock> blocks;  // of the RDD at hand
  std::size_t count = 0;
  read_list(in, text, kCachedParts, "the list of RDDs", [&](const std::string& list, const json& element) {
    if (!list.empty()) {
      if (++count > kMostBlocks) in.fail("partitions", "has too many elements in all");
      if (!in.failed()) blocks.push_back(read_block(in, element, executors));
      return;
    }
    RestRdd rdd;
    rdd.id = in.integer(element, "id");
    rdd.partitions = in.count(element, "numPartitions").value_or(0);
    const json* told = in.failed() ? nullptr : in.member(element, "partitions");
    const int kept = in.count(element, "numCachedPartitions").value_or(static_cast<int>(blocks.size()));
    if (told != nullptr && in.array(*told, "partitions") != nullptr) rdd.blocks = std::move(blocks);
    blocks = {};
    if (kept > 0 && rdds.size() < kMostRdds) rdds.push_back(std::move(rdd));
  });
  return in.result(std::move(rdds));
}

model::Result<std::vector<RestJob>> parse_jobs(std::string_view text) {
  Reader in;
  std::vector<RestJob> jobs;
  std::size_t stages = 0;
  read_list(in, text, kJobParts, "the list of jobs", [&](const std::string&, const json& element) {
    const json* ids = in.member(element, "stageIds");
    if (ids == nullptr || in.array(*ids, "stageIds") == nullptr) {
      in.fail("stageIds", "is missing");
      return;
    }
    RestJob job;
    job.stages = in.integers(*ids, "stageIds");
    stages += job.stages.size();
    if (stages > kMostStagesOfJobs) in.fail("stageIds", "has too many elements in all");
    if (jobs.size() == kMostJobs) in.fail("the list of jobs", "is too long");
    std::sort(job.stages.begin(), job.stages.end());
    job.id = in.count(element, "jobId").value_or(-1);
    const std::string status = in.member(element, "status") == nullptr ? "" : in.name(element, "status");
    job.over = status == "SUCCEEDED" || status == "FAILED";
    if (!in.failed()) jobs.push_back(std::move(job));
  });
  return in.result(std::move(jobs));
}

model::Result<std::vector<RestTask>> parse_tasks(std::string_view text, std::size_t most, Names& executors) {
  Reader in;
  std::vector<RestTask> tasks;
  read_list(in, text, kTaskParts, "the list of tasks", [&](const std::string&, const json& element) {
    if (tasks.size() == most) return;
    RestTask task;
    const std::string status = in.name(element, "status");
    // Spark 3.3 and later say the partition; before, and where it is -1, the position stands for it.
    const json* partition = in.failed() ? nullptr : in.member(element, "partitionId");
    const bool known = partition != nullptr && partition->is_number() && partition->get<double>() >= 0;
    task.partition = in.integer(element, known ? "partitionId" : "index");
    const std::string executor = in.name(element, "executorId");
    if (executors.full()) in.fail("executorId", "has too many values in all");
    if (in.failed()) return;
    task.executor = executors.number(executor);
    const json& metrics = in.object(element, "taskMetrics");
    const auto elapsed_ms = in.figure(element, "duration", kMostMilliseconds);
    if (elapsed_ms) task.run_s = *elapsed_ms / 1000;
    if (status == "SUCCESS") {
      task.status = RestTask::Status::succeeded;
      if (const auto run_ms = in.figure(metrics, "executorRunTime", kMostMilliseconds))
        task.run_s = *run_ms / 1000;
      const json& shuffle = in.object(metrics, "shuffleReadMetrics");
      task.input_bytes =
          std::min(in.bytes(in.object(metrics, "inputMetrics"), "bytesRead") +
                       in.bytes(shuffle, "remoteBytesRead") + in.bytes(shuffle, "localBytesRead"),
                   model::kMaxBytes);
    } else if (status == "RUNNING" || status == "GET RESULT") {
      task.status = RestTask::Status::running;
    }
    task.finished = status == "SUCCESS" || status == "FAILED" || status == "KILLED";
    tasks.push_back(task);
  });
  return in.result(std::move(tasks));
}

model::Result<std::map<std::string, std::string>> parse_properties(std::string_view text,
                                                                   const std::set<std::string>& names) {
  Reader in;
  std::map<std::string, std::string> properties;
  in.read(text, kPropertyParts, [&](const std::string&, const json& pair) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      in.fail("sparkProperties", "has an element that is not a pair of texts");
      return;
    }
    const auto& name = pair[0].get_ref<const std::string&>();
    if (!names.contains(name)) return;
    const auto& value = pair[1].get_ref<const std::string&>();
    if (value.size() > kMostPropertyBytes) {
      in.fail(name, "is too long");
      return;
    }
    properties.emplace(name, value);
  });
  const json* list = in.failed() ? nullptr : in.member(in.root(), "sparkProperties");
  if (!in.failed() && list == nullptr) in.fail("sparkProperties", "is missing");
  if (list != nullptr) in.array(*list, "sparkProperties");
  return in.result(std::move(properties));
}

}  // namespace berth::spark
