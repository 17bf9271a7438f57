// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/observer.h"

#include "cgroup/leaf.h"
#include "cgroup/sampler_parse.h"
#include "daemon/observe/host_memory.h"
#include "daemon/observe/in_order.h"
#include "model/name.h"
#include "os/proc_files.h"
#include "topology/discover.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

namespace berth::daemon {

namespace {

// Ancestors' cpusets change by hand or at boot. Reading each of them every tick would cost more than
// everything else.
constexpr double kAllowedLifetime_s = 10;

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  // The kernel permits any bytes in a host name; the documents do not.
  return name[0] == '\0' ? "localhost" : model::to_name(name.data());
}

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

model::Workload fresh_workload(const cgroup::Identity& identity) {
  model::Workload workload;
  workload.id = identity.id;
  workload.service = identity.service;
  workload.workload_class = identity.workload_class;
  workload.vcpus = identity.vcpus;
  workload.memory_request_bytes = identity.memory_request_bytes;
  workload.priority = identity.priority;
  workload.evictable = identity.evictable;
  workload.created = identity.created;
  workload.deadline = identity.deadline;
  return workload;
}

Observer::Observer(const cgroup::Hierarchy& hierarchy, std::filesystem::path proc_root,
                   std::filesystem::path sys_root, int history)
    : proc_root_(std::move(proc_root)),
      sys_root_(std::move(sys_root)),
      history_(static_cast<std::size_t>(history)),
      has_cpuset_(hierarchy.controllers.count("cpuset") > 0),
      allowed_(hierarchy.root),
      gpus_({.sys_root = sys_root_, .proc_root = proc_root_}),
      gpu_holders_(proc_root_) {
  snapshot_.host = host_name();
}

model::Result<std::unique_ptr<Observer>> Observer::start(const cgroup::Hierarchy& hierarchy,
                                                         std::vector<model::WorkloadRule> rules,
                                                         const std::filesystem::path& proc_root,
                                                         const std::filesystem::path& sys_root, int history) {
  std::unique_ptr<Observer> observer(new Observer(hierarchy, proc_root, sys_root, history));
  auto topology = topology::discover(sys_root, proc_root);
  if (!topology) return model::fail(topology.error().context("reading the host's topology"));
  observer->snapshot_.topology = std::move(*topology);
  if (auto online = topology::read_online(sys_root)) observer->online_ = std::move(*online);

  auto discovery = cgroup::Discovery::start(hierarchy, std::move(rules));
  if (!discovery) return model::fail(discovery.error().context("watching the cgroup tree"));
  observer->discovery_ = std::move(*discovery);
  for (const auto& [id, workload] : observer->found()) observer->sampler_.add(id, workload.cgroup);
  return observer;
}

cgroup::Discovery::Changes Observer::take_changes() {
  for (const auto& path : kernel_.take_changed_paths()) discovery_->look_at(path);
  auto changes = discovery_->process();
  follow(changes);
  return changes;
}

cgroup::Discovery::Changes Observer::set_rules(std::vector<model::WorkloadRule> rules) {
  auto changes = discovery_->set_rules(std::move(rules));
  follow(changes);
  return changes;
}

void Observer::follow(const cgroup::Discovery::Changes& changes) {
  if (changes.appeared.empty() && changes.vanished.empty()) return;
  allowed_.refresh();
  for (const auto& id : changes.vanished) sampler_.remove(id);
  progress_.keep_if([this](const std::string& id, std::uint64_t run) { return cgroup_id(id) == run; });
  for (const auto& id : changes.appeared) {
    const auto workload = found().find(id);
    if (workload != found().end()) sampler_.add(id, workload->second.cgroup);
  }
}

std::uint64_t Observer::cgroup_id(const std::string& workload) const {
  const auto known = found().find(workload);
  return known == found().end() ? 0 : known->second.cgroup->id();
}

void Observer::refresh_topology(std::vector<std::string>& messages) {
  auto online = topology::read_online(sys_root_);
  if (!online || *online == online_) return;
  auto topology = topology::discover(sys_root_, proc_root_);
  if (!topology) {
    messages.push_back(
        topology.error().context("vCPUs came or went, and the topology cannot be read").message());
    return;
  }
  messages.push_back(
      fmt::format("online vCPUs are now {} (were {})", online->to_string(), online_.to_string()));
  online_ = std::move(*online);
  snapshot_.topology = std::move(*topology);
  gpus_.look_at_bus_again();
  allowed_.refresh();
  kernel_.follow_cpus(messages);
}

std::vector<std::string> Observer::read(double now) {
  std::vector<std::string> messages;
  refresh_topology(messages);
  gpus_.look(snapshot_.topology.cpus());
  gpu_holders_.follow(gpus_);

  const auto load = read_host_load(proc_root_);
  for (const auto& message : load.missing) {
    if (said_.count(message) == 0) messages.push_back(message);
  }
  said_ = {load.missing.begin(), load.missing.end()};
  snapshot_.memory = load.memory;
  snapshot_.load1 = load.load1;
  snapshot_.time = now;

  sampler_.want_caches(load.memory.psi_full_avg10 > 0);  // no other code needs them
  sampler_.sample(now, kernel_.read(messages));
  if (now - allowed_read_at_ >= kAllowedLifetime_s || now < allowed_read_at_) {
    allowed_.refresh();
    allowed_read_at_ = now;
  }
  return messages;
}

void Observer::set_spark(std::shared_ptr<const spark::Observation> spark) {
  if (spark != spark_) take_progress(spark.get());
  spark_ = std::move(spark);
}

void Observer::take_progress(const spark::Observation* spark) {
  std::set<std::string> counted;
  const auto is_workload = [this](const std::string& id) { return found().count(id) > 0; };
  const auto applications = spark != nullptr && !spark->progress.empty()
                                ? spark::only_applications(*spark, is_workload)
                                : std::map<std::string, std::string>();
  for (const auto& [id, app] : applications) {
    const auto report = spark->progress.find(app);
    if (report == spark->progress.end()) continue;
    const auto& workload = found().at(id);
    // A count from before this run began belongs to an earlier one.
    if (report->second.time < workload.identity.created) continue;
    (void)progress_.add(id, workload.cgroup->id(), report->second.time, report->second.fraction,
                        ProgressReports::Source::counted);
    counted.insert(id);
  }
  progress_.keep_counted_of(counted);
}

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

const model::Snapshot& Observer::assemble(const Holdings& holdings, const UnmanagedWorkloads& unmanaged,
                                          const Overrides& overrides, const StragglerWatch& stragglers,
                                          const RefusedLimits& refused, const EvictionMarks& evictions) {
  keep_living_workloads();
  allowed_.begin_pass();
  std::map<std::string, spark::Occupancy> spark;
  if (spark_) {
    spark = spark::occupancies(*spark_, [this](const std::string& id) { return found().count(id) > 0; });
  }
  if (spark_ != spark_shown_) {  // a hundred thousand tasks are not copied every tick
    snapshot_.spark_apps = spark_ ? spark_->apps : std::vector<model::SparkApp>();
    spark_shown_ = spark_;
  }
  std::set<std::string> divided;  // workloads that have leaves
  for (const auto& [id, found_workload] : found())
    if (!found_workload.leaf_of.empty()) divided.insert(found_workload.leaf_of);
  InOrder readings(sampler_.readings());
  InOrder finds(found());
  InOrder pins(holdings.cpus);
  InOrder quotas(holdings.cpu_quota);
  InOrder memory_limits(holdings.memory_high);
  for (auto& workload : snapshot_.workloads) {
    const auto& reading = *readings.find(workload.id);
    const auto& found_workload = *finds.find(workload.id);
    auto usage = std::move(workload.usage);
    const auto leaf_since = workload.leaf_since;
    workload = fresh_workload(found_workload.identity);
    workload.usage = std::move(usage);
    const std::string& id = workload.id;
    const std::uint64_t run = found_workload.cgroup->id();
    const auto of_this_run = [run](const Held* held) {
      return held != nullptr && held->cgroup_id == run ? held : nullptr;
    };
    if (!found_workload.leaf_of.empty()) workload.leaf_since = leaf_since.value_or(snapshot_.time);
    // A snapshot assembled twice holds a reading once.
    if (reading.sample && (workload.usage.empty() || workload.usage.back().time < reading.sample->time)) {
      auto sample = *reading.sample;
      if (!found_workload.leaf_of.empty()) count_resident(proc_root_, *found_workload.cgroup, sample);
      keep_sample(workload.usage, sample, history_);
    }
    if (const auto occupancy = spark.find(id); occupancy != spark.end()) {
      workload.spark = occupancy->second.identity;
      workload.spared = occupancy->second.spared;
    } else if (!found_workload.leaf_of.empty() && (!spark_ || spark_->looked_at <= *workload.leaf_since)) {
      workload.spared = "berth has made it of an executor, and has not looked at that since";
    }
    // Executors in leaves must not end with the workload that started them, be that Spark's or not.
    if (!workload.spared && divided.contains(id))
      workload.spared = "its executors have cgroups of their own, and are evicted by themselves";
    const auto leafless = leaf_problems_.find(id);
    if (workload.spared && leafless != leaf_problems_.end()) *workload.spared += "; " + leafless->second;
    workload.progress = progress_.of(id, run);
    workload.progressed_at = progress_.unchanged_since(id, run);
    if (!workload.usage.empty()) workload.usage.back().progress = progress_.newest(id, run);
    workload.cpu_quota_cores = reading.cpu_quota_cores;
    workload.memory_high_bytes = reading.memory_high_bytes;
    workload.cpu_throttled = reading.cpu_throttled;
    workload.cpu_time_s = reading.cpu_time_s;
    workload.cache_bytes = reading.cache_bytes;
    if (!found_workload.leaf_of.empty())
      overrides.apply_to_leaf(workload, found_workload.leaf_of, cgroup_id(found_workload.leaf_of));
    overrides.apply(workload, run);
    const model::CpuSet* configured = &reading.cpus;
    if (const auto* pin = of_this_run(pins.find(id))) {
      workload.cpus = pin->cpus;
      workload.pinned_at = pin->changed_at;
      configured = &pin->original_cpus;
    }
    take_limits(workload, of_this_run(quotas.find(id)), of_this_run(memory_limits.find(id)));
    if (has_cpuset_) {
      workload.allowed_cpus = allowed_.of(id, *configured, holdings.cpus, snapshot_.topology.usable());
    }
    const bool left_alone = unmanaged.count(id) > 0;
    if (left_alone) workload.vcpus = std::nullopt;
    const auto fixed = [&](cgroup::Attribute limit) { return left_alone || refused.count({id, limit}) > 0; };
    // Most of a leaf's memory may be charged elsewhere, where its memory.high has no effect.
    const bool leaf = !found_workload.leaf_of.empty();
    workload.fixed = {.cpu = fixed(cgroup::Attribute::cpu_quota),
                      .memory = leaf || fixed(cgroup::Attribute::memory_high),
                      .life = left_alone || is_never_evicted(id)};
    if (const auto* mark = evictions.of(id, run)) {
      workload.evicted_at = mark->evicted_at;
      if (!mark->evicted_at) workload.fixed.life = true;
    }
  }
  gpu_holders_.join(snapshot_, [this](const std::string& id) { return cgroup_id(id); });
  snapshot_.eviction_ended_at = evictions.ended_at;
  snapshot_.spark_evicted = evictions.apps;
  stragglers.mark(snapshot_, [this](const std::string& id) { return cgroup_id(id); });
  return snapshot_;
}

}  // namespace berth::daemon
