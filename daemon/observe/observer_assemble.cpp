// SPDX-License-Identifier: Apache-2.0
// The snapshot of a tick: the readings, joined with all that is known beside them.
#include "cgroup/leaf.h"
#include "cgroup/processes.h"
#include "cgroup/sampler_parse.h"
#include "daemon/observe/in_order.h"
#include "daemon/observe/observer.h"
#include "model/bounds.h"
#include "model/json.h"
#include "model/path.h"
#include "os/ancestors.h"
#include "os/proc_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace berth::daemon {

using model::Attribute;

namespace {

// Workloads may come and go at every tick; to look for the owners of vCPUs costs as much as there are
// containers.
constexpr double kOwnersPause_s = 2;

// A user without such workloads is forgotten then.
constexpr double kResidentPause_s = 600;

// Memory allocated before the processes were moved stays charged to their former cgroup, but is freed with
// them.
void count_resident(const std::filesystem::path& proc_root, const std::vector<pid_t>& pids,
                    model::UsageSample& sample) {
  const auto resident = os::private_memory_bytes(proc_root, pids);
  if (resident && (!sample.memory_bytes || *sample.memory_bytes < *resident)) sample.memory_bytes = *resident;
}

std::optional<std::uint64_t> period_of(const cgroup::CpuMax& limit) {
  const bool usual = !limit.quota_us || limit.period_us == cgroup::CpuMax().period_us;
  return usual ? std::nullopt : std::optional(limit.period_us);
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
    const auto& before = std::get<cgroup::CpuMax>(quota->original);
    original.cpu_quota_cores = cgroup::cores_of(before);
    workload.cpu_period_us = period_of(before);
  }
  if (memory_high != nullptr) {
    workload.memory_high_bytes = cgroup::bytes_of(std::get<model::MemoryHigh>(memory_high->value));
    workload.held_memory = model::HeldLimit{memory_high->cause, memory_high->since, memory_high->changed_at};
    original.memory_high_bytes = cgroup::bytes_of(std::get<model::MemoryHigh>(memory_high->original));
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
    workload.cgroup_id = run;
    if (const auto past = past_.find(id); !known && past != past_.end() && past->second.cgroup_id == run)
      workload.usage = past->second.usage;
    places_.push_back({.found = &found_workload,
                       .reading = reading,
                       .run = run,
                       .never_evicted = is_never_evicted(id, found_workload.ground),
                       .leaf = !found_workload.leaf_of.empty()});
  }
  past_.clear();
  placed_ = generation_;
  return true;
}

// The values that berth holds, with one pass over each map in the order of the workloads' ids.
struct Observer::Pass {
  explicit Pass(const Holdings& holdings) {
    for (const HeldValues& values : holdings.all()) held.emplace_back(values);
  }

  std::map<std::string, spark::Occupancy> spark;
  std::vector<InOrder<HeldValues>> held;  // in the order of Attribute
};

// A workload's place, and the values held for it. They are null where another run holds them.
struct Observer::Entry {
  const cgroup::Sampler::Reading& reading;
  const cgroup::FoundWorkload& found;
  std::uint64_t run;
  bool never_evicted;
  bool leaf;
  std::array<const Held*, model::kAttributes.size()> held;  // in the order of Attribute

  const Held* of(Attribute attribute) const { return held.at(index_of(attribute)); }
};

// Whether anything but readings and held values says something of any workload.
bool Observer::has_facts(const SnapshotInputs& inputs, const Pass& pass) const {
  return !pass.spark.empty() || spark_awaited_ || !divided_.empty() || !leaf_problems_.empty() ||
         !progress_.empty() || !inputs.overrides.empty() || !inputs.left_alone.empty() ||
         !inputs.refused.empty() || !owners_.empty() || !inputs.evictions.by_workload.empty() ||
         !snapshot_.topology.gpus().empty() || gpu_holders_.has_gpus();
}

// The place of a workload, and the values that `pass` has for it.
Observer::Entry Observer::entry_of(const Place& place, const std::string& id, Pass& pass) {
  const auto of_this_run = [run = place.run](const Held& held) { return held.cgroup_id == run; };
  Entry entry{.reading = *place.reading,
              .found = *place.found,
              .run = place.run,
              .never_evicted = place.never_evicted,
              .leaf = place.leaf,
              .held = {}};
  for (std::size_t i = 0; i < entry.held.size(); ++i)
    entry.held.at(i) = pass.held.at(i).find(id, of_this_run);
  return entry;
}

const model::Snapshot& Observer::assemble(const SnapshotInputs& inputs) {
  const double since_owners_s = snapshot_.time - owners_read_at_;
  if (owners_due_ && !(since_owners_s >= 0 && since_owners_s < kOwnersPause_s))
    find_owners(inputs.holdings.of(Attribute::cpus));
  const bool moved = keep_living_workloads();
  allowed_.begin_pass();
  Pass pass(inputs.holdings);
  take_applications(pass);
  const bool facts = has_facts(inputs, pass);
  const bool had_facts = std::exchange(had_facts_, facts);
  // Without facts, now and in the pass before, each workload still is as its identity says.
  const bool as_found = !moved && !facts && !had_facts;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    model::Workload& workload = snapshot_.workloads[i];
    const Entry entry = entry_of(places_[i], workload.id, pass);
    fill_usage(workload, entry, i > 0 ? &snapshot_.workloads[i - 1].usage : nullptr);
    fill_limits(workload, entry, inputs);
    if (!as_found) {
      take_identity(workload, entry.found.identity);
      fill_spark(workload, entry, pass);
      fill_progress(workload, entry);
      fill_settings(workload, entry, inputs);
      fill_exceptions(workload, entry, inputs);
      fill_life(workload, entry, inputs);
    }
  }
  take_groups(inputs);
  take_others(inputs);
  // As long as it is held, it is watched, whatever the setting is now.
  for (const Attribute attribute : model::kAttributes) {
    if (model::is_asked(attribute))
      sampler_.want(attribute, wanted_[attribute] || !inputs.holdings.of(attribute).empty());
  }
  gpu_holders_.join(snapshot_, [this](const std::string& id) { return cgroup_id(id); });
  snapshot_.eviction_ended_at = inputs.evictions.ended_at;
  snapshot_.recent_use = model::recent_use(inputs.standing, snapshot_.time);
  model::put_on(inputs.standing, snapshot_);
  told_places_.join(snapshot_, [this](const std::string& id) { return cgroup_id(id); });
  take_demand();
  std::erase_if(resident_rounds_, [now = snapshot_.time](const auto& item) {
    return std::abs(now - item.second.time) > kResidentPause_s;
  });
  return snapshot_;
}

// Class and exceptions of a workload may differ from what it was found as.
void Observer::take_groups(const SnapshotInputs& inputs) {
  BestEffortGroups::Exceptions exceptions;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const model::Workload& workload = snapshot_.workloads[i];
    const bool counts = workload.workload_class == model::WorkloadClass::best_effort &&
                        !workload.left_alone && !inputs.left_alone.contains(workload.id);
    if (counts != (places_[i].found->identity.workload_class == model::WorkloadClass::best_effort))
      exceptions.emplace(workload.id, counts);
  }
  groups_.follow(*discovery_, std::move(exceptions));
  snapshot_.groups = groups_.shown(inputs.holdings.of(Attribute::cpu_idle), inputs.refused);
}

// They stay as long as berth holds one, or would: a service that restarts gets its vCPUs back.
void Observer::take_others(const SnapshotInputs& inputs) {
  const HeldValues& pins = inputs.holdings.of(Attribute::cpus);
  const auto may_own = [this](const model::Workload& workload) {
    return workload.workload_class == model::WorkloadClass::latency_sensitive && workload.vcpus &&
           workload.isolation.value_or(usual_isolation_) != model::Isolation::shared;
  };
  const auto& workloads = snapshot_.workloads;
  const bool wanted = (others_wanted_ && std::any_of(workloads.begin(), workloads.end(), may_own)) ||
                      others_.holds_any(pins) || !inputs.standing.others.empty();
  others_.follow(*discovery_, {.owned = snapshot_.owned_cpus,
                               .pins = pins,
                               .online = online_,
                               .wanted = wanted,
                               .time = snapshot_.time});
  snapshot_.others = others_.shown(pins, inputs.refused, allowed_, online_, snapshot_.time);
}

void Observer::take_off() {
  model::take_off(snapshot_);
  snapshot_.spark_evicted.clear();
}

// Adds the present sum of the services' memory to the readings. Without any known use there is none.
void Observer::take_demand() {
  std::uint64_t sum = 0;
  bool known = false;
  for (const model::Workload& workload : snapshot_.workloads) {
    if (workload.workload_class != model::WorkloadClass::latency_sensitive || workload.usage.empty())
      continue;
    const auto bytes = workload.usage.back().memory_bytes;
    if (!bytes) continue;
    known = true;
    sum = std::min(model::kMaxBytes, sum + std::min(model::kMaxBytes, *bytes));
  }
  if (known) model::add_reading(snapshot_.memory_readings, {snapshot_.time, sum});
}

void Observer::set_past_demand(PastDemand past) {
  snapshot_.memory_readings = std::move(past.readings);
  snapshot_.eviction_durations_s = std::move(past.durations_s);
}

void Observer::add_eviction_duration(double duration_s) {
  auto& durations = snapshot_.eviction_durations_s;
  durations.push_back(std::clamp(duration_s, 0.0, model::kLastTime_s));
  if (durations.size() > model::kMostEvictionDurations) durations.erase(durations.begin());
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
  // A snapshot that is assembled twice holds a reading once.
  const auto& newest = entry.reading.sample;
  if (newest && (workload.usage.empty() || workload.usage.back().time < newest->time)) {
    auto sample = *newest;
    const bool by_root = model::may_favour_itself(entry.found.ground, model::Word::write);
    // Its owner can take the memory controller from it, as from a threaded group.
    if (entry.leaf) {
      count_resident(proc_root_, cgroup::pids_below(*entry.found.cgroup, proc_root_), sample);
    } else if (!by_root && !sample.memory_bytes) {
      count_of_a_user(workload, entry, sample);
    }
    workload.usage.add(sample, history_, like);
  }
  workload.cpu_time_s = entry.reading.cpu_time_s;
  workload.cache_bytes = entry.reading.cache_bytes;
}

void Observer::begin_resident_tick(ResidentRound& round, double time) const {
  if (!round.others_wait) round.done.clear();
  if (!found().contains(round.part)) round.part.clear();
  round.others_wait = false;
  round.time = time;
  round.left = kMostResidentOfUser;
}

// A tick counts some of the user's workloads, or a part of a large one. All have their turn before any has
// another one. Meanwhile their last figure stays.
void Observer::count_of_a_user(const model::Workload& workload, const Entry& entry,
                               model::UsageSample& sample) {
  ResidentRound& round = resident_rounds_[*entry.found.ground.user];
  if (round.time != sample.time) begin_resident_tick(round, sample.time);
  if (!workload.usage.empty()) sample.memory_bytes = workload.usage.back().memory_bytes;
  if (round.done.contains(workload.id)) return;
  const bool its_turn = round.part.empty() || round.part == workload.id;
  if (!its_turn || round.left == 0) {
    round.others_wait = true;
    return;
  }
  if (round.part.empty()) {
    round.part_up_to = 0;
    round.part_bytes = 0;
  }
  auto pids = cgroup::pids_below(*entry.found.cgroup, proc_root_);
  std::erase_if(pids, [&round](pid_t pid) { return pid <= round.part_up_to; });
  const bool whole = pids.size() <= round.left;
  pids.resize(std::min(pids.size(), round.left));
  const auto resident = os::private_memory_bytes(proc_root_, pids);
  round.part_bytes = std::min(model::kMaxBytes, round.part_bytes + resident.value_or(0));
  round.left -= pids.size();
  if (!whole) {
    round.part = workload.id;
    round.part_up_to = pids.back();
    round.others_wait = true;
    return;
  }
  round.done.insert(workload.id);
  round.part.clear();
  sample.memory_bytes = resident || round.part_up_to > 0 ? std::optional(round.part_bytes) : std::nullopt;
}

void Observer::fill_spark(model::Workload& workload, const Entry& entry, const Pass& pass) const {
  workload.spark.reset();
  workload.spared.reset();
  if (const auto occupancy = pass.spark.find(workload.id); occupancy != pass.spark.end()) {
    workload.spark = occupancy->second.identity;
    if (entry.found.command_lines_count()) workload.spared = occupancy->second.spared;
  } else if (entry.leaf && (!spark_ || spark_->looked_at <= *workload.leaf_since)) {
    workload.spared = "berth has just made this leaf, and has not looked at its executor yet";
  } else if (spark_awaited_ && entry.found.command_lines_count()) {
    workload.spared = "berth has not looked through the host's processes for Spark yet";
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

// Whether its cpuset.mems leaves out a NUMA node that berth would bind to. A list of all nodes may be left of
// an earlier bond.
bool Observer::is_bound_by_its_owner(const cgroup::Sampler::Reading& reading) const {
  const auto value = reading.value(Attribute::memory_nodes);
  if (!value) return false;
  const model::CpuSet& nodes = std::get<model::MemoryNodes>(*value).nodes;
  return !nodes.empty() && !snapshot_.topology.nodes_to_bind().is_subset_of(nodes);
}

// A value that its owner has set stays.
void Observer::fill_others(model::Workload& workload, const Entry& entry, const SnapshotInputs& inputs) {
  workload.others.clear();
  workload.fixed.others.clear();
  for (const Attribute attribute : model::kAttributes) {
    if (!model::is_other(attribute)) continue;
    const Held* held = entry.of(attribute);
    const auto value = entry.reading.value(attribute);
    const bool by_its_owner = held == nullptr && value && *value != cgroup::unset_value(attribute);
    if (by_its_owner || inputs.left_alone.contains(workload.id) ||
        inputs.refused.contains({workload.id, attribute}))
      workload.fixed.others.insert(attribute);
    if (held == nullptr || held->ticks_foreign > 0) continue;
    const auto take = [&]<typename T>(const T& it) {
      if constexpr (std::is_constructible_v<model::AttributeValue, T>) workload.others.emplace(attribute, it);
    };
    std::visit(take, held->value);
  }
}

void Observer::fill_limits(model::Workload& workload, const Entry& entry, const SnapshotInputs& inputs) {
  workload.cpu_quota_cores = entry.reading.cpu_quota_cores;
  workload.memory_high_bytes = entry.reading.memory_high_bytes;
  workload.cpu_period_us = period_of(entry.reading.cpu_max);
  workload.cpu_throttled = entry.reading.cpu_throttled;
  workload.cpu_lacked = entry.reading.cpu_lacked;
  workload.cpi = entry.reading.cpi;
  workload.llc_misses_per_s = entry.reading.llc_misses_per_s;
  const Held* pin = entry.of(Attribute::cpus);
  const bool pinned = pin != nullptr;
  static const model::CpuSet kNone;
  workload.cpus = pinned ? pin->cpus() : kNone;
  workload.shares = pinned && workload.workload_class == model::WorkloadClass::latency_sensitive &&
                    inputs.standing.sharing.contains(workload.id);
  // A policy asks for no other one, and traces keep each of them.
  const auto& pressure = entry.reading.cpu_pressure_some_avg10;
  const bool own_vcpus =
      pinned && !workload.shares && workload.workload_class == model::WorkloadClass::latency_sensitive;
  workload.cpu_pressure =
      own_vcpus && pressure ? std::optional(std::clamp(*pressure / 100, 0.0, 1.0)) : std::nullopt;
  workload.pinned_at = pinned ? std::optional(pin->changed_at) : std::nullopt;
  const model::CpuSet& configured = pinned ? pin->original_cpus() : entry.reading.cpus;
  take_limits(workload, entry.of(Attribute::cpu_quota), entry.of(Attribute::memory_high));
  const Held* bond = entry.of(Attribute::memory_nodes);
  workload.memory_nodes = bond != nullptr ? bond->nodes() : kNone;
  const bool by_root = model::may_favour_itself(entry.found.ground, model::Word::limit);
  workload.fixed.memory_nodes = (by_root && bond == nullptr && is_bound_by_its_owner(entry.reading)) ||
                                inputs.left_alone.count(workload.id) > 0 ||
                                inputs.refused.count({workload.id, Attribute::memory_nodes}) > 0;
  fill_others(workload, entry, inputs);
  if (has_cpuset_) {
    // A user's own cpulists would keep its work off the pool, and so off every bound.
    workload.allowed_cpus =
        by_root ? allowed_.of(workload.id, configured, inputs.holdings.of(Attribute::cpus),
                              snapshot_.topology.usable())
                : allowed_.of(entry.found.confined_at + "/", kNone, inputs.holdings.of(Attribute::cpus),
                              snapshot_.topology.usable());
  }
}

// Why another program's vCPUs make berth leave the workload alone: it owns some, it lies in a cgroup that
// does, or it has such a cgroup inside. A member of no partition does not own what a group above it lists in
// cpuset.cpus.exclusive: the kernel gives that only to partitions.
std::optional<std::string> Observer::owner_of(const model::Workload& workload) const {
  if (owners_.empty()) return std::nullopt;
  const auto text = [this](std::size_t index) { return model::to_text(snapshot_.owned_cpus[index]); };
  if (const auto own = owners_.find(workload.id); own != owners_.end()) return text(own->second);
  // "a-b" stands before "a/b".
  const std::string below = workload.id + '/';
  if (const auto inside = owners_.lower_bound(below);
      inside != owners_.end() && inside->first.starts_with(below))
    return text(inside->second);
  return os::find_around(std::string(model::parent_path(workload.id)),
                         [&](const std::string& above) -> std::optional<std::string> {
                           const auto found = owners_.find(above);
                           if (found == owners_.end()) return std::nullopt;
                           if (snapshot_.owned_cpus[found->second].how == model::OwnedHow::exclusive)
                             return std::nullopt;
                           return text(found->second);
                         });
}

// What berth may not change of the workload.
void Observer::fill_exceptions(model::Workload& workload, const Entry& entry,
                               const SnapshotInputs& inputs) const {
  const std::string& id = workload.id;
  workload.left_alone = owner_of(workload);
  const bool left_alone = inputs.left_alone.count(id) > 0 || workload.left_alone.has_value();
  if (left_alone) workload.vcpus = std::nullopt;
  const auto fixed = [&](Attribute limit) { return left_alone || inputs.refused.count({id, limit}) > 0; };
  // Most of a leaf's memory may be charged elsewhere, where its memory.high has no effect.
  workload.fixed = {.cpu = fixed(Attribute::cpu_quota),
                    .memory = entry.leaf || fixed(Attribute::memory_high),
                    .memory_nodes = workload.fixed.memory_nodes || workload.left_alone.has_value(),
                    .others = std::move(workload.fixed.others)};
  for (const Attribute attribute : model::kAttributes) {
    if (workload.left_alone && model::is_other(attribute)) workload.fixed.others.insert(attribute);
  }
  workload.gpus.clear();  // their holders are joined afterwards
}

// Whether the workload may end, and when its eviction began.
void Observer::fill_life(model::Workload& workload, const Entry& entry, const SnapshotInputs& inputs) {
  workload.fixed.life =
      entry.never_evicted || inputs.left_alone.count(workload.id) > 0 || workload.left_alone.has_value();
  workload.evicted_at.reset();
  const auto* mark = inputs.evictions.of(workload.id, entry.run);
  if (mark == nullptr) return;
  workload.evicted_at = mark->evicted_at;
  if (!mark->evicted_at) workload.fixed.life = true;
}

}  // namespace berth::daemon
