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

// Memory allocated before the processes were moved stays charged to their former cgroup, but is freed with
// them.
void count_resident(const std::filesystem::path& proc_root, const cgroup::Cgroup& leaf,
                    model::UsageSample& sample) {
  const auto resident = os::private_memory_bytes(proc_root, cgroup::pids_in(leaf));
  if (resident && (!sample.memory_bytes || *sample.memory_bytes < *resident)) sample.memory_bytes = *resident;
}

// `quota`, `memory_high`: values held for this very run, or null.
void take_limits(model::Workload& workload, const Held* quota, const Held* memory_high) {
  workload.original.reset();
  workload.held_cpu.reset();
  workload.held_memory.reset();
  if (quota == nullptr && memory_high == nullptr) return;
  auto& original = workload.original.emplace();
  original = {workload.cpu_quota_cores, workload.memory_high_bytes};
  if (quota != nullptr) {
    workload.cpu_quota_cores = cgroup::cores_of(std::get<cgroup::CpuMax>(quota->value));
    workload.held_cpu = model::HeldLimit{quota->cause, quota->since, quota->changed_at};
    original.cpu_quota_cores = cgroup::cores_of(std::get<cgroup::CpuMax>(quota->original));
  }
  if (memory_high != nullptr) {
    workload.memory_high_bytes = cgroup::bytes_of(std::get<cgroup::MemoryHigh>(memory_high->value));
    workload.held_memory = model::HeldLimit{memory_high->cause, memory_high->since, memory_high->changed_at};
    original.memory_high_bytes = cgroup::bytes_of(std::get<cgroup::MemoryHigh>(memory_high->original));
  }
}

}  // namespace

// Whether the snapshot's workloads are still those that can be read.
bool Observer::is_in_place() const {
  return placed_ == generation_ && places_.size() == found().size() &&
         std::none_of(places_.begin(), places_.end(), [](const Place& place) { return place.reading->gone; });
}

// The snapshot's workloads are those that can be read now, ascending, each with the samples of this very run.
// Returns whether any is new or gone, or has another identity.
bool Observer::keep_living_workloads() {
  if (is_in_place()) return false;
  std::vector<model::Workload> before = std::exchange(snapshot_.workloads, {});
  const std::vector<Place> places_before = std::exchange(places_, {});
  snapshot_.workloads.reserve(found().size());
  places_.reserve(found().size());
  divided_.clear();
  std::size_t next = 0;  // of those before
  InOrder readings(sampler_.readings());
  for (const auto& [id, found_workload] : found()) {
    if (!found_workload.leaf_of.empty()) divided_.insert(found_workload.leaf_of);
    const auto* reading = readings.find(id);
    if (reading == nullptr || reading->gone) continue;
    const std::uint64_t run = found_workload.cgroup->id();
    while (next < before.size() && before[next].id < id) ++next;
    const bool known = next < before.size() && before[next].id == id && places_before[next].run == run;
    auto& workload = snapshot_.workloads.emplace_back(known ? std::move(before[next++])
                                                            : fresh_workload(found_workload.identity));
    if (const auto past = past_.find(id); !known && past != past_.end() && past->second.cgroup_id == run)
      workload.usage = past->second.usage;
    places_.push_back({.found = &found_workload,
                       .reading = reading,
                       .run = run,
                       .never_evicted = is_never_evicted(id),
                       .leaf = !found_workload.leaf_of.empty()});
  }
  past_.clear();
  placed_ = generation_;
  return true;
}

// The values that berth holds, with one pass over each map in the order of the workloads' ids.
struct Observer::Pass {
  explicit Pass(const SnapshotInputs& from)
      : pins(from.holdings.cpus), quotas(from.holdings.cpu_quota), memory_limits(from.holdings.memory_high) {}

  std::map<std::string, spark::Occupancy> spark;
  InOrder<HeldValues> pins;
  InOrder<HeldValues> quotas;
  InOrder<HeldValues> memory_limits;
};

// A workload's place, and the values held for it. They are null where another run holds them.
struct Observer::Entry {
  const cgroup::Sampler::Reading& reading;
  const cgroup::FoundWorkload& found;
  std::uint64_t run;
  bool never_evicted;
  bool leaf;
  const Held* pin;
  const Held* quota;
  const Held* memory_high;
};

// Whether anything but readings and held values says something of any workload.
bool Observer::has_facts(const SnapshotInputs& inputs, const Pass& pass) const {
  return !pass.spark.empty() || !divided_.empty() || !leaf_problems_.empty() || !progress_.empty() ||
         !inputs.overrides.empty() || !inputs.unmanaged.empty() || !inputs.refused.empty() ||
         !inputs.evictions.by_workload.empty() || !inputs.stragglers.empty() ||
         !snapshot_.topology.gpus().empty() || gpu_holders_.has_gpus();
}

const model::Snapshot& Observer::assemble(const SnapshotInputs& inputs) {
  const bool moved = keep_living_workloads();
  allowed_.begin_pass();
  Pass pass(inputs);
  take_applications(pass);
  // In observe mode a snapshot is assembled twice of one reading, with other inputs.
  const bool fresh = std::exchange(fresh_, false) || moved;
  const bool facts = has_facts(inputs, pass);
  const bool had_facts = std::exchange(had_facts_, facts);
  // Without facts, now and in the pass before, each workload still is as its identity says.
  const bool as_found = !moved && !facts && !had_facts;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    model::Workload& workload = snapshot_.workloads[i];
    const Place& place = places_[i];
    const std::uint64_t run = place.run;
    const auto of_this_run = [run](const Held& held) { return held.cgroup_id == run; };
    const Entry entry{.reading = *place.reading,
                      .found = *place.found,
                      .run = run,
                      .never_evicted = place.never_evicted,
                      .leaf = place.leaf,
                      .pin = pass.pins.find(workload.id, of_this_run),
                      .quota = pass.quotas.find(workload.id, of_this_run),
                      .memory_high = pass.memory_limits.find(workload.id, of_this_run)};
    if (fresh) fill_usage(workload, entry, i > 0 ? &snapshot_.workloads[i - 1].usage : nullptr);
    fill_limits(workload, entry, inputs);
    if (as_found) continue;
    take_identity(workload, entry.found.identity);
    fill_spark(workload, entry, pass);
    fill_progress(workload, entry);
    fill_settings(workload, entry, inputs);
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
}

// Each function sets all figures that are its own, whatever the tick before left there. Strings and sets keep
// their memory from tick to tick.
// `like`: the window of the workload before, null for the first one. Most have the same times.
void Observer::fill_usage(model::Workload& workload, const Entry& entry, const model::UsageWindow* like) {
  workload.leaf_since =
      entry.leaf ? std::optional(workload.leaf_since.value_or(snapshot_.time)) : std::nullopt;
  // A snapshot assembled twice holds a reading once.
  const auto& newest = entry.reading.sample;
  if (newest && (workload.usage.empty() || workload.usage.back().time < newest->time)) {
    auto sample = *newest;
    if (entry.leaf) count_resident(proc_root_, *entry.found.cgroup, sample);
    workload.usage.add(sample, history_, like);
  }
  workload.cpu_time_s = entry.reading.cpu_time_s;
  workload.cache_bytes = entry.reading.cache_bytes;
}

void Observer::fill_spark(model::Workload& workload, const Entry& entry, const Pass& pass) const {
  workload.spark.reset();
  workload.spared.reset();
  if (const auto occupancy = pass.spark.find(workload.id); occupancy != pass.spark.end()) {
    workload.spark = occupancy->second.identity;
    workload.spared = occupancy->second.spared;
  } else if (entry.leaf && (!spark_ || spark_->looked_at <= *workload.leaf_since)) {
    workload.spared = "berth has just made this leaf, and has not looked at its executor yet";
  }
  // Executors in leaves must not end with the workload that started them, be that Spark's or not.
  if (!workload.spared && divided_.contains(workload.id))
    workload.spared = "its executors have cgroups of their own, and are evicted one by one";
  const auto leafless = leaf_problems_.find(workload.id);
  if (workload.spared && leafless != leaf_problems_.end()) *workload.spared += "; " + leafless->second;
}

void Observer::fill_progress(model::Workload& workload, const Entry& entry) {
  workload.progress = progress_.of(workload.id, entry.run);
  workload.progressed_at = progress_.unchanged_since(workload.id, entry.run);
  if (!workload.usage.empty()) workload.usage.set_progress(progress_.newest(workload.id, entry.run));
}

// Settings of this run take the place of the configured ones.
void Observer::fill_settings(model::Workload& workload, const Entry& entry,
                             const SnapshotInputs& inputs) const {
  if (entry.leaf)
    inputs.overrides.apply_to_leaf(workload, entry.found.leaf_of, cgroup_id(entry.found.leaf_of));
  inputs.overrides.apply(workload, entry.run);
}

void Observer::fill_limits(model::Workload& workload, const Entry& entry, const SnapshotInputs& inputs) {
  workload.cpu_quota_cores = entry.reading.cpu_quota_cores;
  workload.memory_high_bytes = entry.reading.memory_high_bytes;
  workload.cpu_throttled = entry.reading.cpu_throttled;
  const bool pinned = entry.pin != nullptr;
  static const model::CpuSet kNone;
  workload.cpus = pinned ? entry.pin->cpus() : kNone;
  workload.pinned_at = pinned ? std::optional(entry.pin->changed_at) : std::nullopt;
  const model::CpuSet& configured = pinned ? entry.pin->original_cpus() : entry.reading.cpus;
  take_limits(workload, entry.quota, entry.memory_high);
  if (has_cpuset_) {
    workload.allowed_cpus =
        allowed_.of(workload.id, configured, inputs.holdings.cpus, snapshot_.topology.usable());
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
                    .memory = entry.leaf || fixed(cgroup::Attribute::memory_high),
                    .life = left_alone || entry.never_evicted};
  workload.evicted_at.reset();
  // The holders of GPUs and the finds of stragglers are joined afterwards.
  workload.gpus.clear();
  workload.straggled_at.reset();
  workload.pressed_at.reset();
  if (const auto* mark = inputs.evictions.of(id, entry.run)) {
    workload.evicted_at = mark->evicted_at;
    if (!mark->evicted_at) workload.fixed.life = true;
  }
}

}  // namespace berth::daemon
