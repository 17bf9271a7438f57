// SPDX-License-Identifier: Apache-2.0
#include "spark/rest.h"

#include "model/bounds.h"
#include "model/json.h"
#include "model/name.h"
#include "spark/json_reader.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace berth::spark {

namespace {

using nlohmann::json;
using Reader = JsonReader;

constexpr std::size_t kMostVersionBytes = 64;
constexpr double kMostMilliseconds = model::kLastTime_s * 1000;  // a snapshot takes no later time
}  // namespace

model::Result<std::vector<RestApplication>> parse_applications(std::string_view text) {
  Reader in(text);
  std::vector<RestApplication> applications;
  if (const json* list = in.array(in.root(), "the list of applications")) {
    for (const json& element : *list) {
      RestApplication application;
      application.id = in.name(element, "id");
      const json* attempts = in.failed() ? nullptr : in.member(element, "attempts");
      if (attempts == nullptr || !attempts->is_array() || attempts->empty()) {
        in.fail("attempts", "is missing, or not a list");
        break;
      }
      const json& last = attempts->front();  // newest first
      if (const json* attempt = in.member(last, "attemptId"); attempt != nullptr)
        application.attempt = in.name(last, "attemptId");
      application.started = in.number(last, "startTimeEpoch", kMostMilliseconds) / 1000;
      const json* version = in.member(last, "appSparkVersion");
      if (version != nullptr && version->is_string())
        application.version = version->get_ref<const std::string&>().substr(0, kMostVersionBytes);
      const json* completed = in.member(last, "completed");
      if (completed == nullptr || !completed->is_boolean() || !completed->get<bool>())
        applications.push_back(std::move(application));
      if (in.failed()) break;
    }
  }
  return in.result(std::move(applications));
}

model::Result<std::vector<RestStage>> parse_stages(std::string_view text) {
  Reader in(text);
  std::vector<RestStage> stages;
  if (const json* list = in.array(in.root(), "the list of stages")) {
    for (const json& element : *list) {
      const std::string status = in.name(element, "status");
      RestStage stage;
      stage.id = in.integer(element, "stageId");
      stage.attempt = in.integer(element, "attemptId", 0);
      stage.tasks = in.integer(element, "numTasks");
      stage.completed = in.integer(element, "numCompletedIndices", 0);
      stage.shuffle_write_bytes = in.bytes(element, "shuffleWriteBytes");
      if (const json* rdds = in.member(element, "rddIds"); rdds != nullptr) {
        stage.rdds = in.integers(*rdds, "rddIds");
        if (!stage.rdds.empty()) stage.rdd = stage.rdds.front();
      }
      if (in.failed()) break;
      if (status == "ACTIVE") stage.status = RestStage::Status::active;
      if (status == "COMPLETE") stage.status = RestStage::Status::complete;
      if (status == "FAILED") stage.status = RestStage::Status::failed;
      if (status == "SKIPPED") stage.status = RestStage::Status::skipped;
      if (stage.tasks > 0) stages.push_back(stage);
    }
  }
  return in.result(std::move(stages));
}

namespace {

std::vector<RestBlock> read_blocks(Reader& in, const json& list) {
  std::vector<RestBlock> blocks;
  if (in.array(list, "partitions") == nullptr) return blocks;
  for (const json& element : list) {
    RestBlock& block = blocks.emplace_back();
    const std::string name = in.name(element, "blockName");  // rdd_ID_PARTITION
    const std::size_t start = name.rfind('_') + 1;
    const char* const end = name.data() + name.size();
    const auto [stopped, error] = std::from_chars(name.data() + start, end, block.partition);
    if (start == 0 || error != std::errc() || stopped != end || block.partition < 0)
      in.fail("blockName", "names no partition");
    block.disk_bytes = in.bytes(element, "diskUsed");
    const json* executors = in.member(element, "executors");
    if (executors == nullptr || in.array(*executors, "executors") == nullptr) {
      in.fail("executors", "is missing");
      break;
    }
    for (const json& executor : *executors) {
      if (!executor.is_string() || !model::is_name(executor.get_ref<const std::string&>())) {
        in.fail("executors", "has an element that is not a name");
        break;
      }
      block.executors.push_back(executor.get<std::string>());
    }
    if (in.failed()) break;
  }
  return blocks;
}

}  // namespace

model::Result<std::vector<RestRdd>> parse_cached(std::string_view text) {
  Reader in(text);
  std::vector<RestRdd> rdds;
  if (const json* list = in.array(in.root(), "the list of RDDs")) {
    for (const json& element : *list) {
      RestRdd rdd;
      rdd.id = in.integer(element, "id");
      rdd.partitions = in.integer(element, "numPartitions", 0);
      const int kept = in.integer(element, "numCachedPartitions", 0);
      const json* blocks = in.failed() ? nullptr : in.member(element, "partitions");
      if (blocks != nullptr && !blocks->is_null()) rdd.blocks = read_blocks(in, *blocks);
      if (in.failed()) break;
      if (kept > 0) rdds.push_back(std::move(rdd));
    }
  }
  return in.result(std::move(rdds));
}

model::Result<std::vector<RestJob>> parse_jobs(std::string_view text) {
  Reader in(text);
  std::vector<RestJob> jobs;
  if (const json* list = in.array(in.root(), "the list of jobs")) {
    for (const json& element : *list) {
      const json* ids = in.member(element, "stageIds");
      if (ids == nullptr || in.array(*ids, "stageIds") == nullptr) {
        in.fail("stageIds", "is missing");
        break;
      }
      RestJob& job = jobs.emplace_back();
      job.stages = in.integers(*ids, "stageIds");
      std::sort(job.stages.begin(), job.stages.end());
      job.id = in.integer(element, "jobId", -1);
      const std::string status = in.member(element, "status") == nullptr ? "" : in.name(element, "status");
      job.over = status == "SUCCEEDED" || status == "FAILED";
      if (in.failed()) break;
    }
  }
  return in.result(std::move(jobs));
}

model::Result<std::vector<RestTask>> parse_tasks(std::string_view text) {
  Reader in(text);
  std::vector<RestTask> tasks;
  if (const json* list = in.array(in.root(), "the list of tasks")) {
    for (const json& element : *list) {
      RestTask& task = tasks.emplace_back();
      const std::string status = in.name(element, "status");
      // Spark 3.3 and later say the partition; before, and where it is -1, the position stands for it.
      const json* partition = in.failed() ? nullptr : in.member(element, "partitionId");
      const bool known = partition != nullptr && partition->is_number() && partition->get<double>() >= 0;
      task.partition = in.integer(element, known ? "partitionId" : "index");
      task.executor = in.name(element, "executorId");
      if (in.failed()) break;
      const json& metrics = in.object(element, "taskMetrics");
      const double elapsed_ms = in.number(element, "duration", kMostMilliseconds, 0);
      if (status == "SUCCESS") {
        task.status = RestTask::Status::succeeded;
        task.run_s = in.number(metrics, "executorRunTime", kMostMilliseconds, elapsed_ms) / 1000;
        const json& shuffle = in.object(metrics, "shuffleReadMetrics");
        task.input_bytes =
            std::min(in.bytes(in.object(metrics, "inputMetrics"), "bytesRead") +
                         in.bytes(shuffle, "remoteBytesRead") + in.bytes(shuffle, "localBytesRead"),
                     model::kMaxBytes);
      } else if (status == "RUNNING" || status == "GET RESULT") {
        task.status = RestTask::Status::running;
        task.run_s = elapsed_ms / 1000;
      }
      task.finished = status == "SUCCESS" || status == "FAILED" || status == "KILLED";
      if (in.failed()) break;
    }
  }
  return in.result(std::move(tasks));
}

model::Result<std::map<std::string, std::string>> parse_properties(std::string_view text,
                                                                   const std::set<std::string>& names) {
  Reader in(text);
  std::map<std::string, std::string> properties;
  const json* list = in.failed() ? nullptr : in.member(in.root(), "sparkProperties");
  if (!in.failed() && list == nullptr) in.fail("sparkProperties", "is missing");
  if (list != nullptr && in.array(*list, "sparkProperties") != nullptr) {
    for (const json& pair : *list) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
        in.fail("sparkProperties", "has an element that is not a pair of texts");
        break;
      }
      const auto& name = pair[0].get_ref<const std::string&>();
      if (!names.contains(name)) continue;
      const auto& value = pair[1].get_ref<const std::string&>();
      if (value.size() > kMostPropertyBytes) {
        in.fail(name, "is too long");
        break;
      }
      properties.emplace(name, value);
    }
  }
  return in.result(std::move(properties));
}

}  // namespace berth::spark
