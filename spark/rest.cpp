// SPDX-License-Identifier: Apache-2.0
#include "spark/rest.h"

#include "model/json.h"
#include "model/name.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace berth::spark {

namespace {

using nlohmann::json;

constexpr double kMostMilliseconds = 253402300799e3;  // a snapshot takes no later time, and no longer one
constexpr int kMostPartitions = 1'000'000'000;

// Whether brackets nest deeper than any of these answers has reason to: what is parsed is kept on the heap,
// and a driver could have us build a million levels of nothing.
bool too_deep_or_many(std::string_view text) {
  constexpr int kMostLevels = 32;
  constexpr std::size_t kMostValues = 500'000;  // some 90 MB once parsed
  std::size_t values = 0;
  int level = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      if (++values > kMostValues) return true;
    } else if (c == '[' || c == '{') {
      if (++values > kMostValues) return true;
      if (++level > kMostLevels) return true;
    } else if (c == ']' || c == '}') {
      --level;
    }
  }
  return false;
}

// Reads straight down; the first error sticks.
class Reader {
 public:
  explicit Reader(std::string_view text) {
    if (too_deep_or_many(text)) {
      fail("", "is nested too deeply, or of too many values");
      return;
    }
    root_ = json::parse(text, nullptr, false);
    if (root_.is_discarded()) fail("", "is not JSON");
  }

  const json& root() const { return root_; }
  bool failed() const { return !error_.empty(); }
  void fail(const std::string& where, const char* why) {
    if (error_.empty()) error_ = fmt::format("{} {}", where.empty() ? "the answer" : where, why);
  }
  template <typename T>
  model::Result<T> result(T value) const {
    if (failed()) return model::fail(model::ErrorKind::invalid_input, error_);
    return value;
  }

  // nullptr, and an error, where it is not an array.
  const json* array(const json& value, const char* where) {
    if (!failed() && !value.is_array()) fail(where, "is not an array");
    return failed() ? nullptr : &value;
  }
  // Absent or null: `otherwise`, or an error where there is none.
  double number(const json& object, const char* name, double most, std::optional<double> otherwise = {}) {
    const json* value = member(object, name);
    if (value == nullptr && otherwise) return *otherwise;
    if (value == nullptr || !value->is_number()) {
      fail(name, value == nullptr ? "is missing" : "is not a number");
      return 0;
    }
    const auto read = value->get<double>();
    if (!(read >= 0 && read <= most)) fail(name, "is out of range");
    return failed() ? 0 : read;
  }
  int integer(const json& object, const char* name, std::optional<double> otherwise = {}) {
    return static_cast<int>(number(object, name, kMostPartitions, otherwise));
  }
  // -1 counts as 0: Spark's way to say that it does not know.
  std::uint64_t bytes(const json& object, const char* name) {
    const json* value = member(object, name);
    if (value != nullptr && value->is_number() && value->get<double>() < 0) return 0;
    return static_cast<std::uint64_t>(number(object, name, static_cast<double>(model::kMaxBytes), 0));
  }
  std::string name(const json& object, const char* name) {
    const json* value = member(object, name);
    if (value == nullptr || !value->is_string() || !model::is_name(value->get_ref<const std::string&>())) {
      fail(name, "is missing, or no name");
      return "";
    }
    return value->get<std::string>();
  }
  // An empty object where it is absent.
  const json& object(const json& outer, const char* name) {
    static const json kNone = json::object();
    const json* value = member(outer, name);
    if (value == nullptr) return kNone;
    if (!value->is_object()) fail(name, "is not an object");
    return failed() ? kNone : *value;
  }
  const json* member(const json& object, const char* name) {
    if (!object.is_object()) {
      fail("an element", "is not an object");
      return nullptr;
    }
    const auto found = object.find(name);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

 private:
  json root_;
  std::string error_;
};

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
        in.fail("attempts", "is missing, or no list");
        break;
      }
      const json& last = attempts->front();  // newest first
      if (const json* attempt = in.member(last, "attemptId"); attempt != nullptr)
        application.attempt = in.name(last, "attemptId");
      application.started = in.number(last, "startTimeEpoch", kMostMilliseconds) / 1000;
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
      if (in.failed()) break;
      if (status == "ACTIVE") stage.status = RestStage::Status::active;
      if (status == "COMPLETE") stage.status = RestStage::Status::complete;
      if (status == "FAILED") stage.status = RestStage::Status::failed;
      if (status != "SKIPPED" && stage.tasks > 0) stages.push_back(stage);
    }
  }
  return in.result(std::move(stages));
}

model::Result<std::vector<std::vector<int>>> parse_jobs(std::string_view text) {
  Reader in(text);
  std::vector<std::vector<int>> jobs;
  if (const json* list = in.array(in.root(), "the list of jobs")) {
    for (const json& element : *list) {
      const json* ids = in.member(element, "stageIds");
      if (ids == nullptr || in.array(*ids, "stageIds") == nullptr) {
        in.fail("stageIds", "is missing");
        break;
      }
      std::vector<int>& job = jobs.emplace_back();
      for (const json& id : *ids) {
        if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
            id.get<std::int64_t>() > kMostPartitions) {
          in.fail("stageIds", "holds what is no stage");
          break;
        }
        job.push_back(id.get<int>());
      }
      std::sort(job.begin(), job.end());
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

model::Result<std::map<std::string, std::string>> parse_properties(std::string_view text) {
  Reader in(text);
  std::map<std::string, std::string> properties;
  const json* list = in.failed() ? nullptr : in.member(in.root(), "sparkProperties");
  if (!in.failed() && list == nullptr) in.fail("sparkProperties", "is missing");
  if (list != nullptr && in.array(*list, "sparkProperties") != nullptr) {
    for (const json& pair : *list) {
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
        in.fail("sparkProperties", "holds what is no pair of texts");
        break;
      }
      properties.emplace(pair[0].get<std::string>(), pair[1].get<std::string>());
    }
  }
  return in.result(std::move(properties));
}

}  // namespace berth::spark
