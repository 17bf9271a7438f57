// SPDX-License-Identifier: Apache-2.0
#include "model/snapshot_checks.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/core.h>

namespace berth::model {

namespace {

// Where each id was first seen; the path is spelled out only for an error.
template <typename Id>
class Ids {
 public:
  Ids(ReadContext& context, std::string what) : context_(&context), what_(std::move(what)) {}

  // `list` is the path of the array that `index` counts in.
  void add(const Id& id, const std::string& list, std::size_t index) {
    const auto [seen, fresh] = first_.emplace(id, std::pair(&list, index));
    if (!fresh)
      context_->fail(
          fmt::format("{}[{}].id", list, index),
          fmt::format("{} has this id already, at {}[{}]", what_, *seen->second.first, seen->second.second));
  }
  bool has(const Id& id) const { return first_.contains(id); }
  std::size_t index_of(const Id& id) const { return first_.at(id).second; }

 private:
  ReadContext* context_;
  std::string what_;
  std::unordered_map<Id, std::pair<const std::string*, std::size_t>> first_;
};

void check_workload(const Workload& workload, const std::string& path, const Topology& topology,
                    const std::unordered_map<std::string_view, std::size_t>& gpus, ReadContext& context) {
  if (const CpuSet unknown = workload.cpus - topology.all(); !unknown.empty())
    context.fail(path + ".cpus", fmt::format("vCPU {} is not in the topology, which has {}",
                                             unknown.to_string(), topology.all().to_string()));
  for (std::size_t index = 0; index < workload.gpus.size(); ++index) {
    const std::string& gpu = workload.gpus[index];
    if (!gpus.contains(gpu))
      context.fail(fmt::format("{}.gpus[{}]", path, index),
                   fmt::format("GPU {} is not in the topology", in_quotes(gpu)));
    const auto here = workload.gpus.begin() + static_cast<std::ptrdiff_t>(index);
    if (std::find(workload.gpus.begin(), here, gpu) != here)
      context.fail(fmt::format("{}.gpus[{}]", path, index),
                   fmt::format("GPU {} is given twice", in_quotes(gpu)));
  }
  // Equal times are legal: a straggler is then not judged (docs/decisions/stragglers.md).
  const double* times = workload.usage.times().begin();
  for (std::size_t index = 1; index < workload.usage.size(); ++index)
    if (times[index] < times[index - 1])
      context.fail(fmt::format("{}.usage[{}].time", path, index),
                   fmt::format("{} is before the sample above, {}", times[index], times[index - 1]));
  for (std::size_t index = 1; index < workload.progress.size(); ++index)
    if (workload.progress[index].time < workload.progress[index - 1].time)
      context.fail(fmt::format("{}.progress[{}].time", path, index),
                   fmt::format("{} is before the report above, {}", workload.progress[index].time,
                               workload.progress[index - 1].time));
}

// Follows parents from a stage that is on or below a cycle until it is surely on it.
std::size_t stage_on_cycle(const SparkApp& app, const Ids<int>& ids, const std::vector<bool>& resolved,
                           std::size_t start) {
  std::size_t stage = start;
  for (std::size_t step = 0; step < app.stages.size(); ++step)
    for (const int parent : app.stages[stage].parents) {
      const std::size_t index = ids.index_of(parent);
      if (resolved[index]) continue;
      stage = index;
      break;
    }
  return stage;
}

void check_acyclic(const SparkApp& app, const std::string& path, const Ids<int>& ids, ReadContext& context) {
  const std::size_t count = app.stages.size();
  std::vector<std::size_t> waiting_for(count);
  std::vector<std::vector<std::size_t>> children(count);
  std::vector<std::size_t> ready;
  for (std::size_t index = 0; index < count; ++index) {
    waiting_for[index] = app.stages[index].parents.size();
    if (waiting_for[index] == 0) ready.push_back(index);
    for (const int parent : app.stages[index].parents) children[ids.index_of(parent)].push_back(index);
  }
  std::vector<bool> resolved(count, false);
  while (!ready.empty()) {
    const std::size_t index = ready.back();
    ready.pop_back();
    resolved[index] = true;
    for (const std::size_t child : children[index])
      if (--waiting_for[child] == 0) ready.push_back(child);
  }
  const auto left = std::find(resolved.begin(), resolved.end(), false);
  if (left == resolved.end()) return;
  const std::size_t stage =
      stage_on_cycle(app, ids, resolved, static_cast<std::size_t>(left - resolved.begin()));
  context.fail(fmt::format("{}.stages[{}].parents", path, stage),
               fmt::format("stage {} is its own ancestor", app.stages[stage].id));
}

void check_app(const SparkApp& app, const std::string& path, ReadContext& context) {
  Ids<int> ids(context, "another stage");
  const std::string list = path + ".stages";
  for (std::size_t index = 0; index < app.stages.size(); ++index) ids.add(app.stages[index].id, list, index);
  for (std::size_t index = 0; index < app.stages.size(); ++index) {
    const SparkStage& stage = app.stages[index];
    if (stage.tasks.size() > static_cast<std::size_t>(stage.partitions))
      context.fail(fmt::format("{}[{}].tasks", list, index),
                   fmt::format("{} tasks completed of {} partitions", stage.tasks.size(), stage.partitions));
    for (std::size_t parent = 0; parent < stage.parents.size(); ++parent)
      if (!ids.has(stage.parents[parent]))
        context.fail(fmt::format("{}[{}].parents[{}]", list, index, parent),
                     fmt::format("there is no stage {}", stage.parents[parent]));
  }
  if (!context.failed()) check_acyclic(app, path, ids, context);
}

}  // namespace

Result<void> check_spark_app(const SparkApp& app) {
  ReadContext context;
  check_app(app, "the application", context);
  if (context.failed()) return fail(*context.error());
  return {};
}

void check_snapshot(const Snapshot& snapshot, ReadContext& context) {
  const std::string workloads = "$.workloads";
  const std::string pending = "$.pending";
  const std::string apps = "$.spark_apps";
  std::unordered_map<std::string_view, std::size_t> gpus;
  for (std::size_t index = 0; index < snapshot.topology.gpus().size(); ++index)
    gpus.emplace(snapshot.topology.gpus()[index].id, index);

  Ids<std::string> ids(context, "another workload");
  for (std::size_t index = 0; index < snapshot.workloads.size() && !context.failed(); ++index) {
    ids.add(snapshot.workloads[index].id, workloads, index);
    check_workload(snapshot.workloads[index], fmt::format("{}[{}]", workloads, index), snapshot.topology,
                   gpus, context);
  }
  const std::string groups = "$.best_effort_groups";
  Ids<std::string> group_ids(context, "another group");
  for (std::size_t index = 0; index < snapshot.groups.size(); ++index)
    group_ids.add(snapshot.groups[index].id, groups, index);
  const std::string others = "$.others";
  Ids<std::string> other_ids(context, "another cgroup");
  for (std::size_t index = 0; index < snapshot.others.size(); ++index) {
    const OtherGroup& other = snapshot.others[index];
    other_ids.add(other.id, others, index);
    // A plan names both kinds alike.
    if (ids.has(other.id))
      context.fail(fmt::format("{}[{}].id", others, index), in_quotes(other.id) + " is a workload");
    if (other.held && other.held->empty())
      context.fail(fmt::format("{}[{}].held", others, index), "it names no vCPU");
  }
  for (std::size_t index = 0; index < snapshot.topology.gpus().size(); ++index) {
    const Gpu& gpu = snapshot.topology.gpus()[index];
    if (gpu.holder && !ids.has(*gpu.holder))
      context.fail(fmt::format("$.topology.gpus[{}].holder", index),
                   fmt::format("there is no workload {}", in_quotes(*gpu.holder)));
  }
  for (std::size_t index = 0; index < snapshot.pending.size(); ++index)
    ids.add(snapshot.pending[index].id, pending, index);

  Ids<std::string> app_ids(context, "another application");
  for (std::size_t index = 0; index < snapshot.spark_apps.size() && !context.failed(); ++index) {
    app_ids.add(snapshot.spark_apps[index].id, apps, index);
    check_app(snapshot.spark_apps[index], fmt::format("{}[{}]", apps, index), context);
  }
}

}  // namespace berth::model
