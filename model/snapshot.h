// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/best_effort_cores.h"
#include "model/error.h"
#include "model/memory_series.h"
#include "model/oversell.h"
#include "model/owned_cpus.h"
#include "model/topology.h"
#include "model/workload.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::model {

struct MemoryState {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
  double psi_full_avg10 = 0;  // percent, 0..100, as in /proc/pressure/memory

  friend bool operator==(const MemoryState&, const MemoryState&) = default;
};

// cpu_inst = b0 + k1*cpu_sc + k2*cpu_ss (docs/decisions/interference.md).
struct InterferenceModel {
  double b0 = 0;
  double k1 = 0;
  double k2 = 0;

  friend bool operator==(const InterferenceModel&, const InterferenceModel&) = default;
};

struct ServiceProfile {
  std::optional<double> pressure;  // 0..1
  std::optional<InterferenceModel> model;
  // In words, where berth learned anything of the service: why its model is used, or why none is.
  std::optional<std::string> learned = {};

  friend bool operator==(const ServiceProfile&, const ServiceProfile&) = default;
};

// A workload that asks to be admitted and does not run yet.
struct PendingWorkload {
  std::string id;
  std::string service;
  WorkloadClass workload_class = WorkloadClass::latency_sensitive;
  std::optional<int> vcpus;
  std::optional<Isolation> isolation = {};  // as in Workload
  std::uint64_t memory_request_bytes = 0;
  int gpus = 0;                                         // how many, all on one NUMA node
  std::uint64_t gpu_memory_bytes = 0;                   // that must be free on each
  std::optional<std::string> gpu_model = std::nullopt;  // glob; nullopt: any
  bool gpu_exclusive = true;                            // no other workload may use them
  // Ids of the GPUs that its admission promised: it gets these and no others.
  std::vector<std::string> told_gpus = {};
  CpuSet told_cpus = {};  // the vCPUs that its admission promised; it gets these if it can
  // Resources that earlier ticks took from best-effort work or set aside for it.
  double room_cpu_cores = 0;
  std::uint64_t room_memory_bytes = 0;

  friend bool operator==(const PendingWorkload&, const PendingWorkload&) = default;
};

struct SparkTask {
  std::string executor;
  std::uint64_t input_bytes = 0;
  double duration_s = 0;
  // For a `cached` stage: executors that are the only keeper of some output of this task. If no task of the
  // stage has any, the executor that ran a task keeps its output.
  std::vector<std::string> kept_by = {};

  friend bool operator==(const SparkTask&, const SparkTask&) = default;
};

struct SparkStage {
  int id = 0;
  std::vector<int> parents;
  int partitions = 0;
  std::uint64_t shuffle_write_bytes = 0;
  bool cached = false;           // the program keeps the stage's output on executors for later stages
  int job = -1;                  // the job that it was made for; -1 where that is not known
  std::vector<SparkTask> tasks;  // completed ones

  friend bool operator==(const SparkStage&, const SparkStage&) = default;
};

struct SparkRunningTask {
  std::string executor;
  double elapsed_s = 0;

  friend bool operator==(const SparkRunningTask&, const SparkRunningTask&) = default;
};

struct SparkApp {
  std::string id;
  double calculated_time_s = 0;
  bool shuffle_service = false;
  bool migration = false;
  std::vector<SparkStage> stages;
  std::vector<SparkRunningTask> running;

  friend bool operator==(const SparkApp&, const SparkApp&) = default;
};

// Whether a snapshot may hold the application: its stages have different ids, each parent is one of them, no
// stage is its own ancestor, and none has more completed tasks than partitions. Error invalid_input names the
// place.
Result<void> check_spark_app(const SparkApp& app);

// The largest share of the requested resources that was in use in the five minutes from `time` on. CPU: the
// highest mean of a minute. Memory: the highest reading. May be above 1.
struct UsedShare {
  double time = 0;  // epoch seconds
  double cpu = 0;
  double memory = 0;

  friend bool operator==(const UsedShare&, const UsedShare&) = default;
};

// Means over the earlier ticks of the last five minutes.
struct RecentUse {
  int samples = 0;  // ticks
  double cpu = 0;   // utilisation, as OversoldResource has it
  double memory = 0;
  double load1 = 0;

  friend bool operator==(const RecentUse&, const RecentUse&) = default;
};

// A cgroup of the highest below which there is nothing but best-effort work. The work itself is one if other
// work shares its parent (docs/decisions/priority.md).
struct BestEffortGroup {
  std::string id;                         // its path
  std::uint64_t cgroup_id = 0;            // likewise; 0 in a document
  std::optional<LowPriority> held = {};   // that berth gave it; nullopt: it has its owner's
  std::optional<LowPriority> owner = {};  // that its owner gave it
  std::optional<double> changed_at = {};  // epoch seconds of berth's last change, while it holds one
  bool fixed = false;                     // the host refuses the write, or another program's value stays

  friend bool operator==(const BestEffortGroup&, const BestEffortGroup&) = default;
};

// A cgroup of the highest in which no workload is, nor anything that berth never confines
// (docs/decisions/pinning.md, other work). Only root can make, name and pin one.
struct OtherGroup {
  std::string id;                              // its path
  std::uint64_t cgroup_id = 0;                 // likewise; 0 in a document
  std::optional<CpuSet> held = {};             // the vCPUs to which berth confined it
  std::optional<CpuSet> allowed_cpus = {};     // as of a workload
  std::optional<double> changed_at = {};       // epoch seconds of berth's last change, while it holds one
  std::optional<std::string> left_alone = {};  // why berth does not confine it

  friend bool operator==(const OtherGroup&, const OtherGroup&) = default;
};

// The host as one tick saw it; policies read nothing else.
struct Snapshot {
  std::string host;
  double time = 0;  // epoch seconds, as are all times in it
  // The wall clock shows this many seconds more than `time`. Not 0 in berthd alone, after the wall clock was
  // set (docs/architecture.md, clocks). Documents have times of the wall clock, so to_json() adds it.
  double wall_ahead_s = 0;
  double load1 = 0;
  Topology topology;
  // vCPUs that other programs gave to their own work; none of them is usable in `topology`. By owner.
  std::vector<OwnedCpus> owned_cpus = {};
  MemoryState memory;
  std::map<std::string, ServiceProfile> services;
  std::vector<Workload> workloads;                        // ascending by id
  std::vector<BestEffortGroup> groups = {};               // likewise
  std::vector<OtherGroup> others = {};                    // likewise; empty if no service may own vCPUs
  std::map<int, BestEffortCores> best_effort_cores = {};  // of the last plan, by domain id
  std::vector<PendingWorkload> pending;
  std::vector<SparkApp> spark_apps;
  std::optional<double> straggler_seen_at;       // epoch seconds of the last tick that found any straggler
  Advertised advertised = {};                    // as it was before this tick
  std::vector<UsedShare> used_shares = {};       // of the last day, oldest first
  std::optional<RecentUse> recent_use = {};      // nullopt: no earlier tick is known
  std::optional<double> eviction_ended_at = {};  // epoch seconds: when the last evicted workload had ended
  // By application: epoch seconds when berth last began to evict one of its executors or drivers here.
  std::map<std::string, double> spark_evicted = {};
  // The sums of the use of all latency-sensitive workloads, as add_reading() keeps them. Empty: their samples
  // tell.
  std::vector<MemoryReading> memory_readings = {};
  // Of the last kMostEvictionDurations evictions, oldest first: from the first step to the end.
  std::vector<double> eviction_durations_s = {};

  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

// nullptr if there is no such workload. Workloads ascend by id.
const Workload* find_workload(const Snapshot& snapshot, const std::string& id);
Workload* find_workload(Snapshot& snapshot, const std::string& id);
// Likewise; groups ascend by id.
const BestEffortGroup* find_group(const Snapshot& snapshot, const std::string& id);
const OtherGroup* find_other(const Snapshot& snapshot, const std::string& id);
// The group that the workload is in, or is; nullptr where it is in none.
const BestEffortGroup* group_of(const Snapshot& snapshot, const std::string& workload);
// nullopt: the usual one.
inline std::optional<LowPriority> priority_of(const BestEffortGroup& group) {
  return group.held ? group.held : group.owner;
}

}  // namespace berth::model
