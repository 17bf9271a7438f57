// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/spark/fake_driver.h"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace berth::spark::test {

using nlohmann::json;

namespace {

int completed_of(const FakeStage& stage) {
  return static_cast<int>(std::count_if(stage.list.begin(), stage.list.end(),
                                        [](const auto& task) { return task.status == "SUCCESS"; }));
}

}  // namespace

std::string FakeDriver::applications() const {
  json one{{"startTime", "2026-11-21T10:15:00.000GMT"},
           {"endTime", "1969-12-31T23:59:59.999GMT"},
           {"lastUpdated", "2026-11-21T10:15:00.000GMT"},
           {"duration", 0},
           {"sparkUser", "alice"},
           {"completed", completed},
           {"appSparkVersion", version},
           {"startTimeEpoch", started_ms},
           {"endTimeEpoch", -1},
           {"lastUpdatedEpoch", started_ms}};
  if (!attempt.empty()) one["attemptId"] = attempt;
  return json::array({{{"id", id}, {"name", "etl"}, {"attempts", json::array({one})}}}).dump(2);
}

std::string FakeDriver::stages_json(const std::string& query) const {
  json list = json::array();
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {  // newest first, as Spark has them
    if (query == "?status=active" && stage->status != "ACTIVE") continue;
    json rdds = json::array({stage->rdd >= 0 ? stage->rdd : 10 * stage->id, 10 * stage->id + 1});
    for (const int rdd : stage->through) rdds.push_back(rdd);
    list.push_back({{"status", stage->status},
                    {"stageId", stage->id},
                    {"attemptId", stage->attempt},
                    {"numTasks", stage->tasks},
                    {"numActiveTasks", 0},
                    {"numCompleteTasks", completed_of(*stage)},
                    {"numFailedTasks", 0},
                    {"numKilledTasks", 0},
                    {"numCompletedIndices", completed_of(*stage)},
                    {"executorRunTime", 0},
                    {"shuffleWriteBytes", stage->shuffle_write},
                    {"name", "count at etl.py:7"},
                    {"rddIds", rdds},
                    {"accumulatorUpdates", json::array()}});
  }
  return list.dump(2);
}

std::string FakeDriver::tasks_json(const std::string& path) {
  int stage_id = 0;
  int attempt_id = 0;
  int offset = 0;
  int length = 20;
  std::sscanf(path.c_str(), "/stages/%d/%d/taskList?offset=%d&length=%d", &stage_id, &attempt_id, &offset,
              &length);
  json list = json::array();
  for (const FakeStage& stage : stages) {
    if (stage.id != stage_id || stage.attempt != attempt_id) continue;
    const auto count = static_cast<int>(stage.list.size());
    for (int i = offset; i < std::min({count, offset + length, offset + page_limit}); ++i) {
      const FakeTask& task = stage.list[static_cast<std::size_t>(i)];
      json one{{"taskId", 1000 + i},
               {"index", i},
               {"attempt", 0},
               {"partitionId", task.partition >= 0 ? task.partition : i},
               {"launchTime", "2026-11-21T10:15:03.000GMT"},
               {"duration", task.run_ms + 50},
               {"executorId", task.executor},
               {"host", "127.0.0.1"},
               {"status", task.status},
               {"taskLocality", "PROCESS_LOCAL"},
               {"speculative", false},
               {"accumulatorUpdates", json::array()}};
      if (task.status == "SUCCESS") {
        one["taskMetrics"] = {{"executorRunTime", task.run_ms},
                              {"inputMetrics", {{"bytesRead", task.input}, {"recordsRead", 1}}},
                              {"shuffleReadMetrics",
                               {{"remoteBytesRead", task.shuffle_read / 2},
                                {"localBytesRead", task.shuffle_read - task.shuffle_read / 2}}},
                              {"shuffleWriteMetrics", {{"bytesWritten", 10}}}};
      }
      list.push_back(std::move(one));
      ++tasks_given;
    }
  }
  return list.dump(2);
}

static json blocks_json(int rdd, const std::vector<FakeBlock>& blocks) {
  json partitions = json::array();
  for (const FakeBlock& block : blocks) {
    partitions.push_back({{"blockName", "rdd_" + std::to_string(rdd) + "_" + std::to_string(block.partition)},
                          {"storageLevel", "Memory Serialized 1x Replicated"},
                          {"memoryUsed", 100},
                          {"diskUsed", block.disk},
                          {"executors", block.executors}});
  }
  return partitions;
}

model::Result<std::string> FakeDriver::get(const std::string& url) {
  constexpr const char* kApi = "/api/v1/applications";
  const std::size_t at = url.find(kApi);
  if (at == std::string::npos) return model::fail(model::ErrorKind::refused, "GET " + url + ": status 404");
  std::string path = url.substr(at + std::string(kApi).size());
  if (path.empty()) return instead.count("") > 0 ? instead.at("") : applications();
  const std::string own = "/" + id + (attempt.empty() ? "" : "/" + attempt);
  if (!path.starts_with(own)) return model::fail(model::ErrorKind::refused, "GET " + url + ": status 404");
  path = path.substr(own.size());
  asked.push_back(path);
  const std::string name = path.substr(0, path.find('?'));
  if (instead.count(name) > 0) return instead.at(name);
  if (name == "/stages") return stages_json(path.substr(name.size()));
  if (name == "/storage/rdd") {
    json list = json::array();
    for (const auto& [rdd, partitions] : cached) {
      list.push_back({{"id", rdd},
                      {"name", "PythonRDD"},
                      {"numPartitions", rdd_partitions},
                      {"numCachedPartitions", partitions},
                      {"storageLevel", "Memory Serialized 1x Replicated"},
                      {"memoryUsed", 100},
                      {"diskUsed", 0}});
      if (blocks.count(rdd) > 0) list.back()["partitions"] = blocks_json(rdd, blocks.at(rdd));
    }
    return list.dump();
  }
  if (name == "/jobs") {
    json list = json::array();
    int job = 0;
    for (const auto& ids : jobs) {
      const auto status = job_status.find(job);
      list.push_back({{"jobId", job++},
                      {"status", status == job_status.end() ? "RUNNING" : status->second},
                      {"stageIds", ids}});
    }
    return list.dump();
  }
  if (name == "/environment") {
    json pairs = json::array();
    for (const auto& [key, value] : properties) pairs.push_back(json::array({key, value}));
    return json{{"runtime", json::object()}, {"sparkProperties", pairs}}.dump();
  }
  if (name.find("/taskList") != std::string::npos) return tasks_json(path);
  return model::fail(model::ErrorKind::refused, "GET " + url + ": status 404");
}

}  // namespace berth::spark::test
