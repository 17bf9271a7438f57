// SPDX-License-Identifier: Apache-2.0
// The snapshot of a tick: the readings, joined with all that is known beside them.
#include "cgroup/leaf.h"
#include "cgroup/sampler_parse.h"
#include "daemon/observe/in_order.h"
#include "daemon/observe/observer.h"
#include "os/proc_files.h"

#include <algorithm>
#include <set>
#include <utility>

namespace berth::daemon {

namespace {

void keep_sample(std::vector<model::UsageSample>& usage, const model::UsageSample& sample,
                 std::size_t history) {
  if (usage.size() >= history) {
    usage.erase(usage.begin(), usage.end() - static_cast<std::ptrdiff_t>(history - 1));
  }
  // Reserved at once: a thousand rings that grow side by side would leave as much memory in holes as they
  // take.
  usage.reserve(history);
  usage.push_back(sample);
}

// Memory allocated before the processes were moved stays charged to their former cgroup, but is freed with
// them.
void count_resident(const std::filesystem::path& proc_root, const cgroup::Cgroup& leaf,
                    model::UsageSample& sample) {
  const auto resident = os::private_memory_bytes(proc_root, cgroup::pids_in(leaf));
  if (resident && (!sample.memory_bytes || *sample.memory_bytes < *resident)) sample.memory_bytes = *resident;
}

// `quota`, `memory_high`: values held for this very run, or null.
void take_limits(model::Workload& workload, const Held* quota, const Held* memory_high) {
  if (quota == nullptr && memory_high == nullptr) return;
  auto& original = workload.original.emplace();
  original = {workload.cpu_quota_cores, workload.memory_high_bytes};
  if (quota != nullptr) {
    workload.cpu_quota_cores = cgroup::cores_of(quota->value);
    workload.held_cpu = model::HeldLimit{quota->cause, quota->since, quota->changed_at};
    original.cpu_quota_cores = cgroup::cores_of(quota->original);
  }
  if (memory_high != nullptr) {
    workload.memory_high_bytes = cgroup::parse_bytes(memory_high->value);
    workload.held_memory = model::HeldLimit{memory_high->cause, memory_high->since, memory_high->changed_at};
    original.memory_high_bytes = cgroup::parse_bytes(memory_high->original);
  }
}

}  // namespace

// The snapshot's workloads are those that can be read now, ascending, each with the samples of this very run.
void Observer::keep_living_workloads() {
  auto& workloads = snapshot_.workloads;
  const auto lives = [](const cgroup::FoundWorkload* found_workload, const cgroup::Sampler::Reading* reading,
                        std::uint64_t run) {
    return found_workload != nullptr && found_workload->cgroup->id() == run && reading != nullptr &&
           !reading->gone;
  };
  {
    InOrder finds(found());
    InOrder readings(sampler_.readings());
    std::erase_if(runs_, [&](const auto& item) {
      return !lives(finds.find(item.first), readings.find(item.first), item.second);
    });
  }
  InOrder runs(runs_);
  std::erase_if(workloads,
                [&](const model::Workload& workload) { return runs.find(workload.id) == nullptr; });
  if (workloads.size() == found().size()) return;
  const auto old_size = static_cast<std::ptrdiff_t>(workloads.size());
  InOrder readings(sampler_.readings());
  for (const auto& [id, found_workload] : found()) {
    const auto run = found_workload.cgroup->id();
    if (!lives(&found_workload, readings.find(id), run) || !runs_.emplace(id, run).second) continue;
    workloads.push_back(fresh_workload(found_workload.identity));
    if (const auto past = past_.find(id); past != past_.end() && past->second.cgroup_id == run)
      workloads.back().usage = std::move(past->second.usage);
  }
  past_.clear();
  std::inplace_merge(workloads.begin(), workloads.begin() + old_size, workloads.end(),
                     [](const model::Workload& a, const model::Workload& b) { return a.id < b.id; });
}

// The maps of a tick, and one pass over each in the order of the workloads' ids.
struct Observer::Pass {
  Pass(const Observer& observer, const SnapshotInputs& from)
      : readings(observer.sampler_.readings()),
        finds(observer.found()),
        pins(from.holdings.cpus),
        quotas(from.holdings.cpu_quota),
        memory_limits(from.holdings.memory_high) {}

  std::map<std::string, spark::Occupancy> spark;
  std::set<std::string> divided;  // workloads that have leaves
  InOrder<Readings> readings;
  InOrder<std::map<std::string, cgroup::FoundWorkload>> finds;
  InOrder<HeldValues> pins;
  InOrder<HeldValues> quotas;
  InOrder<HeldValues> memory_limits;
};

// A workload's entries in these maps. Values that are held are null where another run holds them.
struct Observer::Entry {
  const cgroup::Sampler::Reading& reading;
  const cgroup::FoundWorkload& found;
  std::uint64_t run;
  const Held* pin;
  const Held* quota;
  const Held* memory_high;

  bool is_leaf() const { return !found.leaf_of.empty(); }
};

const model::Snapshot& Observer::assemble(const SnapshotInputs& inputs) {
  keep_living_workloads();
  allowed_.begin_pass();
  Pass pass(*this, inputs);
  take_applications(pass);
  for (auto& workload : snapshot_.workloads) {
    const auto& found_workload = *pass.finds.find(workload.id);
    const std::uint64_t run = found_workload.cgroup->id();
    const auto of_this_run = [run](const Held* held) {
      return held != nullptr && held->cgroup_id == run ? held : nullptr;
    };
    const Entry entry{.reading = *pass.readings.find(workload.id),
                      .found = found_workload,
                      .run = run,
                      .pin = of_this_run(pass.pins.find(workload.id)),
                      .quota = of_this_run(pass.quotas.find(workload.id)),
                      .memory_high = of_this_run(pass.memory_limits.find(workload.id))};
    fill_usage(workload, entry);
    fill_spark(workload, entry, pass);
    fill_progress(workload, entry);
    fill_settings(workload, entry, inputs);
    fill_limits(workload, entry, inputs);
    fill_exceptions(workload, entry, inputs);
  }
  gpu_holders_.join(snapshot_, [this](const std::string& id) { return cgroup_id(id); });
  snapshot_.eviction_ended_at = inputs.evictions.ended_at;
  snapshot_.spark_evicted = inputs.evictions.apps;
  inputs.stragglers.mark(snapshot_, [this](const std::string& id) { return cgroup_id(id); });
  return snapshot_;
}

void Observer::take_applications(Pass& pass) {
  if (spark_) {
    pass.spark = spark::occupancies(*spark_, [this](const std::string& id) { return found().count(id) > 0; });
  }
  if (spark_ != spark_shown_) {  // a hundred thousand tasks are not copied every tick
    snapshot_.spark_apps = spark_ ? spark_->apps : std::vector<model::SparkApp>();
    spark_shown_ = spark_;
  }
  for (const auto& [id, found_workload] : found())
    if (!found_workload.leaf_of.empty()) pass.divided.insert(found_workload.leaf_of);
}

// Begins the workload anew. Its samples stay, with the newest one added.
void Observer::fill_usage(model::Workload& workload, const Entry& entry) {
  auto usage = std::move(workload.usage);
  const auto leaf_since = workload.leaf_since;
  workload = fresh_workload(entry.found.identity);
  workload.usage = std::move(usage);
  if (entry.is_leaf()) workload.leaf_since = leaf_since.value_or(snapshot_.time);
  // A snapshot assembled twice holds a reading once.
  const auto& newest = entry.reading.sample;
  if (newest && (workload.usage.empty() || workload.usage.back().time < newest->time)) {
    auto sample = *newest;
    if (entry.is_leaf()) count_resident(proc_root_, *entry.found.cgroup, sample);
    keep_sample(workload.usage, sample, history_);
  }
  workload.cpu_time_s = entry.reading.cpu_time_s;
  workload.cache_bytes = entry.reading.cache_bytes;
}

void Observer::fill_spark(model::Workload& workload, const Entry& entry, const Pass& pass) const {
  if (const auto occupancy = pass.spark.find(workload.id); occupancy != pass.spark.end()) {
    workload.spark = occupancy->second.identity;
    workload.spared = occupancy->second.spared;
  } else if (entry.is_leaf() && (!spark_ || spark_->looked_at <= *workload.leaf_since)) {
    workload.spared = "berth has just made this leaf, and has not looked at its executor yet";
  }
  // Executors in leaves must not end with the workload that started them, be that Spark's or not.
  if (!workload.spared && pass.divided.contains(workload.id))
    workload.spared = "its executors have cgroups of their own, and are evicted one by one";
  const auto leafless = leaf_problems_.find(workload.id);
  if (workload.spared && leafless != leaf_problems_.end()) *workload.spared += "; " + leafless->second;
}

void Observer::fill_progress(model::Workload& workload, const Entry& entry) {
  workload.progress = progress_.of(workload.id, entry.run);
  workload.progressed_at = progress_.unchanged_since(workload.id, entry.run);
  if (!workload.usage.empty()) workload.usage.back().progress = progress_.newest(workload.id, entry.run);
}

// Settings of this run take the place of the configured ones.
void Observer::fill_settings(model::Workload& workload, const Entry& entry,
                             const SnapshotInputs& inputs) const {
  if (entry.is_leaf())
    inputs.overrides.apply_to_leaf(workload, entry.found.leaf_of, cgroup_id(entry.found.leaf_of));
  inputs.overrides.apply(workload, entry.run);
}

void Observer::fill_limits(model::Workload& workload, const Entry& entry, const SnapshotInputs& inputs) {
  workload.cpu_quota_cores = entry.reading.cpu_quota_cores;
  workload.memory_high_bytes = entry.reading.memory_high_bytes;
  workload.cpu_throttled = entry.reading.cpu_throttled;
  const model::CpuSet* configured = &entry.reading.cpus;
  if (entry.pin != nullptr) {
    workload.cpus = entry.pin->cpus;
    workload.pinned_at = entry.pin->changed_at;
    configured = &entry.pin->original_cpus;
  }
  take_limits(workload, entry.quota, entry.memory_high);
  if (has_cpuset_) {
    workload.allowed_cpus =
        allowed_.of(workload.id, *configured, inputs.holdings.cpus, snapshot_.topology.usable());
  }
}

// What berth may not change of the workload.
void Observer::fill_exceptions(model::Workload& workload, const Entry& entry, const SnapshotInputs& inputs) {
  const std::string& id = workload.id;
  const bool left_alone = inputs.unmanaged.count(id) > 0;
  if (left_alone) workload.vcpus = std::nullopt;
  const auto fixed = [&](cgroup::Attribute limit) {
    return left_alone || inputs.refused.count({id, limit}) > 0;
  };
  // Most of a leaf's memory may be charged elsewhere, where its memory.high has no effect.
  workload.fixed = {.cpu = fixed(cgroup::Attribute::cpu_quota),
                    .memory = entry.is_leaf() || fixed(cgroup::Attribute::memory_high),
                    .life = left_alone || is_never_evicted(id)};
  if (const auto* mark = inputs.evictions.of(id, entry.run)) {
    workload.evicted_at = mark->evicted_at;
    if (!mark->evicted_at) workload.fixed.life = true;
  }
}

}  // namespace berth::daemon
