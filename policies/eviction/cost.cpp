// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/cost.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace berth::policies {

namespace {

// W is at least that, so that the first of many tasks predicts no eternity.
constexpr double kLeastDone = 0.01;

double share_done(const model::SparkStage& stage) {
  return stage.partitions > 0 ? static_cast<double>(stage.tasks.size()) / stage.partitions : 0.0;
}

bool complete(const model::SparkStage& stage) {
  return stage.tasks.size() >= static_cast<std::size_t>(std::max(0, stage.partitions));
}

// By position of the stage: positions of the stages that read its output.
std::vector<std::vector<std::size_t>> children_of(const model::SparkApp& app) {
  std::unordered_map<int, std::size_t> position;
  for (std::size_t i = 0; i < app.stages.size(); ++i) position.emplace(app.stages[i].id, i);
  std::vector<std::vector<std::size_t>> children(app.stages.size());
  for (std::size_t i = 0; i < app.stages.size(); ++i) {
    for (const int parent : app.stages[i].parents) {
      const auto found = position.find(parent);
      if (found != position.end() && found->second != i) children[found->second].push_back(i);
    }
  }
  return children;
}

// Positions; each reader comes before the stages that it reads.
std::vector<std::size_t> readers_first(const std::vector<std::vector<std::size_t>>& children) {
  std::vector<std::size_t> order;
  enum class Mark { unseen, open, done };
  std::vector<Mark> marks(children.size(), Mark::unseen);
  // Depth first with a stack of its own: a job may be tens of thousands of stages deep.
  std::vector<std::pair<std::size_t, std::size_t>> stack;
  for (std::size_t start = 0; start < children.size(); ++start) {
    if (marks[start] != Mark::unseen) continue;
    marks[start] = Mark::open;
    stack.emplace_back(start, 0);
    while (!stack.empty()) {
      const std::size_t stage = stack.back().first;
      if (stack.back().second == children[stage].size()) {
        marks[stage] = Mark::done;
        order.push_back(stage);
        stack.pop_back();
        continue;
      }
      const std::size_t child = children[stage][stack.back().second++];
      if (marks[child] != Mark::unseen) continue;
      marks[child] = Mark::open;
      stack.emplace_back(child, 0);
    }
  }
  return order;
}

// Where the job is not known, each stage is a job of its own.
int job_of(const model::SparkStage& stage) { return stage.job >= 0 ? stage.job : -1 - stage.id; }

// The jobs of the present: those that run, and the latest, which may be over.
std::unordered_set<int> present_jobs(const model::SparkApp& app) {
  std::unordered_set<int> jobs;
  const model::SparkStage* latest = nullptr;
  for (const model::SparkStage& stage : app.stages) {
    if (latest == nullptr || stage.id > latest->id) latest = &stage;
    if (!complete(stage)) jobs.insert(job_of(stage));
  }
  if (latest != nullptr) jobs.insert(job_of(*latest));
  return jobs;
}

// The stages that jobs to come are expected to have. A program submits its jobs one after the other, so no
// driver knows how many follow. An application that has completed some jobs counts as half through: as many
// stages again are expected. Stages without a known job say nothing of later jobs.
std::size_t stages_to_come(const model::SparkApp& app) {
  struct Job {
    std::size_t stages = 0;
    bool complete = true;
  };
  std::unordered_map<int, Job> jobs;
  for (const model::SparkStage& stage : app.stages) {
    if (stage.job < 0) continue;
    Job& job = jobs[stage.job];
    ++job.stages;
    job.complete = job.complete && complete(stage);
  }
  std::size_t count = 0;
  for (const auto& [id, job] : jobs) count += job.complete ? job.stages : 0;
  return count;
}

// Whether a stage's output has yet to be read, whichever executor is lost. A program may go over the same
// data again and again. Then no reader waits between two jobs, nor once the present job has read it. So the
// output also counts as awaited where several jobs have read it, the present one among them.
bool is_awaited(const model::SparkApp& app, std::size_t stage, const std::vector<std::size_t>& readers,
                const std::unordered_set<int>& present) {
  if (readers.empty()) return app.stages[stage].shuffle_write_bytes > 0;
  const auto any = [&](auto holds) {
    return std::any_of(readers.begin(), readers.end(), [&](std::size_t i) { return holds(app.stages[i]); });
  };
  if (any([](const model::SparkStage& reader) { return !complete(reader); })) return true;
  const int first = job_of(app.stages[readers.front()]);
  return any([&](const model::SparkStage& reader) { return job_of(reader) != first; }) &&
         any([&](const model::SparkStage& reader) { return present.count(job_of(reader)) > 0; });
}

// One executor's part of one stage.
struct Part {
  std::size_t place = 0;  // of the stage, in the order of readers_first()
  std::size_t tasks = 0;  // tasks that it ran, without kept output
  double run_s = 0;       // run time of those
  bool keeps = false;     // keeps results of tasks for later stages, as the only executor
  double kept_s = 0;      // run time of those, on any executor
  // The last task of the stage whose results it keeps, counted from 1. A driver may name it many times.
  std::size_t last_kept = 0;
};

// By executor, ascending by place. An application may have thousands of executors and stages. So each
// executor lists only the stages that it had a part in.
using Parts = std::unordered_map<std::string_view, std::vector<Part>>;

void add_parts(const model::SparkStage& stage, std::size_t place, Parts& parts) {
  const auto part_of = [&](const std::string& executor) -> Part& {
    std::vector<Part>& of_stages = parts[executor];
    if (of_stages.empty() || of_stages.back().place != place) of_stages.push_back({.place = place});
    return of_stages.back();
  };
  const bool said = std::any_of(stage.tasks.begin(), stage.tasks.end(),
                                [](const model::SparkTask& task) { return !task.kept_by.empty(); });
  std::size_t number = 0;
  for (const model::SparkTask& task : stage.tasks) {
    ++number;
    const auto keep = [&](const std::string& executor) {
      Part& part = part_of(executor);
      if (std::exchange(part.last_kept, number) == number) return;
      part.keeps = true;
      part.kept_s += task.duration_s;
    };
    bool kept_there = stage.cached && !said;
    if (kept_there) keep(task.executor);
    for (auto keeper = task.kept_by.begin(); stage.cached && keeper != task.kept_by.end(); ++keeper) {
      keep(*keeper);
      if (*keeper == task.executor) kept_there = true;
    }
    if (kept_there) continue;
    Part& part = part_of(task.executor);
    ++part.tasks;
    part.run_s += task.duration_s;
  }
}

// Whether two ascending lists have a number in common. Takes time by the shorter one: the stages of one
// executor may be few, and the readers of one stage may be very many, or the other way round.
bool have_common(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  const auto& shorter = a.size() < b.size() ? a : b;
  const auto& longer = a.size() < b.size() ? b : a;
  return std::any_of(shorter.begin(), shorter.end(), [&](std::size_t number) {
    return std::binary_search(longer.begin(), longer.end(), number);
  });
}

}  // namespace

double computation_of(const model::SparkStage& stage, Complexity complexity) {
  double run_s = 0;
  double without_input_s = 0;
  double input_bytes = 0;
  double ratios = 0;
  std::size_t with_input = 0;
  for (const model::SparkTask& task : stage.tasks) {
    run_s += task.duration_s;
    if (task.input_bytes == 0) {
      without_input_s += task.duration_s;
    } else {
      input_bytes += static_cast<double>(task.input_bytes);
      ratios += task.duration_s / static_cast<double>(task.input_bytes);
      ++with_input;
    }
  }
  if (complexity == Complexity::pooled || with_input == 0) return run_s;
  return input_bytes * (ratios / static_cast<double>(with_input)) + without_input_s;
}

model::SparkAppFigures app_figures(const model::SparkApp& app, const EvictionSettings& settings,
                                   double delta) {
  model::SparkAppFigures figures;
  const auto children = children_of(app);
  for (std::size_t i = 0; i < app.stages.size(); ++i) {
    const model::SparkStage& stage = app.stages[i];
    figures.computation_s += computation_of(stage, settings.complexity);
    double read = 0;
    for (const std::size_t child : children[i]) read = std::max(read, share_done(app.stages[child]));
    figures.transmission_bytes += static_cast<double>(stage.shuffle_write_bytes) * read;
    figures.stages_done += share_done(stage);
  }
  figures.stages = app.stages.size();
  figures.stages_to_come = stages_to_come(app);
  figures.recalculation_s =
      settings.alpha * figures.computation_s + settings.beta_s_per_byte * figures.transmission_bytes;
  if (figures.stages_done > 0) {
    const auto stages = static_cast<double>(figures.stages + figures.stages_to_come);
    const double left = std::max(0.0, stages - figures.stages_done);
    figures.remaining_s =
        settings.gamma * app.calculated_time_s * left / std::max(figures.stages_done, kLeastDone);
  }
  figures.cost_s = figures.recalculation_s - delta * figures.remaining_s.value_or(0);
  return figures;
}

std::map<std::string, ExecutorLoss> executor_losses(const model::SparkApp& app,
                                                    const EvictionSettings& settings) {
  std::map<std::string, ExecutorLoss> losses;
  const auto children = children_of(app);
  const auto order = readers_first(children);
  std::vector<std::size_t> place(order.size());  // of a stage in that order
  for (std::size_t at = 0; at < order.size(); ++at) place[order[at]] = at;
  Parts parts;
  std::vector<bool> awaited(app.stages.size(), false);
  const auto present = present_jobs(app);
  std::vector<std::vector<std::size_t>> readers(order.size());  // ascending places, by the place read
  for (const std::size_t i : order) {
    awaited[i] = is_awaited(app, i, children[i], present);
    add_parts(app.stages[i], place[i], parts);
    for (const std::size_t child : children[i]) readers[place[i]].push_back(place[child]);
    std::sort(readers[place[i]].begin(), readers[place[i]].end());
  }
  std::vector<std::size_t> gone;  // places of stages of which something is lost with the executor, ascending
  for (const auto& [executor, of_stages] : parts) {
    ExecutorLoss& loss = losses[std::string(executor)];
    double written_s = 0;
    double move_bytes = 0;
    gone.clear();
    for (const Part& part : of_stages) {
      const std::size_t i = order[part.place];
      const model::SparkStage& stage = app.stages[i];
      // Others have to repeat what is lost, and need its input for that.
      const bool shuffle_goes =
          part.tasks > 0 && !app.shuffle_service && (awaited[i] || have_common(readers[part.place], gone));
      if (part.keeps || shuffle_goes) gone.push_back(part.place);
      loss.kept_s += part.kept_s;  // no other executor has it, and it does not move
      if (!shuffle_goes) continue;
      written_s += part.run_s;
      move_bytes += static_cast<double>(stage.shuffle_write_bytes) * static_cast<double>(part.tasks) /
                    static_cast<double>(stage.tasks.size());
    }
    if (app.migration) written_s = std::min(written_s, settings.beta_s_per_byte * move_bytes);
    loss.lost_s = loss.kept_s + written_s;
  }
  for (const model::SparkRunningTask& task : app.running) losses[task.executor].running_s += task.elapsed_s;
  return losses;
}

}  // namespace berth::policies
