// SPDX-License-Identifier: Apache-2.0
// The facts that follow from what a driver has said: the graph of its stages, and its application.
#include "model/json.h"
#include "spark/sparkd/driver.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace berth::spark {

namespace {

using Status = RestStage::Status;

}  // namespace

void Driver::draw_graph() {
  std::map<int, KnownStage> stages;
  for (const auto& [id, attempt] : attempts_) {
    KnownStage& stage = stages[id.first];
    const Status status = attempt.stage.status;
    if (status == Status::skipped) {
      if (stage.state != KnownStage::State::ran) stage.state = KnownStage::State::skipped;
    } else if (status != Status::pending) {
      stage.state = KnownStage::State::ran;
    }
    stage.complete = status == Status::complete;  // as of the last attempt
    stage.wrote = stage.wrote || attempt.stage.shuffle_write_bytes > 0;
    stage.rdd = attempt.stage.rdd;
    stage.tasks = std::max(stage.tasks, attempt.stage.tasks);
  }
  graph_ = graph_of(stages, jobs_, log_.parents());
  constexpr std::size_t kNode = 96;
  graph_bytes_ = graph_.stands_for.size() * kNode;
  for (const auto& [id, parents] : graph_.parents)
    graph_bytes_ += kNode + (1 + kCopies) * (parents.size() * sizeof(int) + 16);
}

// The stage itself where no earlier one stands for it.
int Driver::stood_for_by(int stage) const {
  const auto other = graph_.stands_for.find(stage);
  return other == graph_.stands_for.end() ? stage : other->second;
}

// The executors that are the only keepers of a task's results of RDDs. If the place of a partition is not
// known, it counts as kept where it was computed. So it does if the RDD has another number of partitions than
// the stage.
std::vector<std::string> Driver::keepers(const std::vector<const Kept*>& rdds, int partitions,
                                         const RestTask& task) const {
  std::vector<std::string> executors;
  for (const Kept* kept : rdds) {
    if (!kept->known || kept->partitions != partitions) {
      executors.push_back(names_.of(task.executor));
      continue;
    }
    // The last one that was told, where there are several.
    const auto end = std::partition_point(kept->alone.begin(), kept->alone.end(),
                                          [&task](const auto& told) { return told.first <= task.partition; });
    if (end != kept->alone.begin() && std::prev(end)->first == task.partition)
      executors.push_back(names_.of(std::prev(end)->second));
  }
  std::sort(executors.begin(), executors.end());
  executors.erase(std::unique(executors.begin(), executors.end()), executors.end());
  executors.shrink_to_fit();
  return executors;
}

std::optional<model::SparkApp> Driver::app(double now) const {
  if (!caught_up_) return std::nullopt;
  model::SparkApp app;
  app.id = id_;
  app.calculated_time_s = std::clamp(now - started_.value_or(now), 0.0, now);
  app.shuffle_service = shuffle_service_ || remote_shuffle_;
  app.migration = migration_;
  std::map<int, std::map<int, const RestTask*>> done;  // by stage and partition; the newest attempt's
  std::set<int> given_up;
  for (const auto& [id, attempt] : attempts_) {
    // A stage with an earlier stand-in has tasks only where it repeated work that was lost.
    const int of = stood_for_by(id.first);
    if (of == id.first && attempt.stage.status != Status::skipped) {
      if (app.stages.empty() || app.stages.back().id != id.first) {
        model::SparkStage& stage = app.stages.emplace_back();
        stage.id = id.first;
        if (const auto found = graph_.parents.find(id.first); found != graph_.parents.end())
          stage.parents = found->second;
        stage.job = job_of(id.first);
      }
      model::SparkStage& stage = app.stages.back();
      stage.partitions = std::max(stage.partitions, attempt.stage.tasks);
      stage.shuffle_write_bytes =
          std::min(stage.shuffle_write_bytes + attempt.stage.shuffle_write_bytes, model::kMaxBytes);
      if (is_given_up(attempt.stage)) {
        given_up.insert(id.first);
      } else {
        given_up.erase(id.first);  // a later attempt goes on
      }
    }
    if (attempt.stage.status == Status::active) {
      // An earlier attempt had done this work, and it is lost. A speculative copy of a task takes nothing
      // away.
      for (const RestTask& task : attempt.tasks)
        if (task.status != RestTask::Status::succeeded) done[of].erase(task.partition);
    }
    for (const RestTask& task : attempt.tasks) {
      if (task.status == RestTask::Status::succeeded) {
        done[of][task.partition] = &task;
      } else if (task.status == RestTask::Status::running && attempt.stage.status == Status::active &&
                 task.run_s >= 0) {
        app.running.push_back({names_.of(task.executor), task.run_s});
      }
    }
  }
  std::map<int, std::vector<const Kept*>> kept_of;  // by stage
  for (const auto& [rdd, by] : cached_by_)
    if (kept_of[by.second].size() < kMostKeepers) kept_of[by.second].push_back(&kept_.at(rdd));
  for (model::SparkStage& stage : app.stages) {
    const std::vector<const Kept*>& kept = kept_of[stage.id];
    const auto& tasks = done[stage.id];
    // A task without a time of its own counts as one of its stage.
    const double usual_s = mean_run_s(tasks);
    stage.tasks.reserve(tasks.size());
    for (const auto& [partition, task] : tasks) {
      // A retry of a few partitions has the numbers of the whole stage; a number beyond that is wrong.
      if (partition >= stage.partitions) continue;
      model::SparkTask& value = stage.tasks.emplace_back();
      value = {.executor = names_.of(task->executor),
               .input_bytes = task->input_bytes,
               .duration_s = task->run_s < 0 ? usual_s : task->run_s,
               .kept_by = keepers(kept, stage.partitions, *task)};
      stage.cached = stage.cached || !value.kept_by.empty();
    }
    // No job waits for the rest of it.
    if (given_up.count(stage.id) > 0) stage.partitions = static_cast<int>(stage.tasks.size());
  }
  std::erase_if(app.stages, [&](const model::SparkStage& stage) {
    return given_up.count(stage.id) > 0 && stage.tasks.empty();
  });
  // Parents that are not listed any more have nothing that could be lost.
  const auto is_listed = [&app](int id) {
    const auto found = std::lower_bound(app.stages.begin(), app.stages.end(), id,
                                        [](const model::SparkStage& stage, int of) { return stage.id < of; });
    return found != app.stages.end() && found->id == id;
  };
  for (model::SparkStage& stage : app.stages)
    std::erase_if(stage.parents, [&](int parent) { return !is_listed(parent); });
  return app;
}

}  // namespace berth::spark
