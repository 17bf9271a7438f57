// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/attribute.h"
#include "model/cpu_set.h"
#include "model/usage_window.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::model {

enum class WorkloadClass { latency_sensitive, best_effort };

// How much of its place a latency-sensitive workload has alone (docs/decisions/levels.md).
enum class Isolation {
  shared,  // nothing
  vcpus,   // vCPUs
  cores,   // whole cores
};
const char* to_string(Isolation isolation);  // "shared", "vcpus", "cores"

enum class SparkRole { executor, driver };

struct SparkIdentity {
  std::string app;
  SparkRole role = SparkRole::executor;
  std::optional<std::string> executor;

  friend bool operator==(const SparkIdentity&, const SparkIdentity&) = default;
};

// The progress that a workload reported, and the time of the report.
struct ProgressReport {
  double time = 0;      // epoch seconds
  double fraction = 0;  // 0..1

  friend bool operator==(const ProgressReport&, const ProgressReport&) = default;
};

// Why berth holds a limit at another value than its original (docs/decisions/stragglers.md and lending.md).
enum class HeldCause {
  extended,   // a straggler was given more
  lent,       // a best-effort workload lends what it does not use
  preempted,  // a best-effort workload was shrunk beyond the part that it does not use
  lifted,     // a quota that could only throttle bursts of an instance on vCPUs of its own
};

struct HeldLimit {
  HeldCause cause = HeldCause::extended;
  double since = 0;       // epoch seconds of the first change
  double changed_at = 0;  // and of the last

  friend bool operator==(const HeldLimit&, const HeldLimit&) = default;
};

// The limits a workload had before berth first changed them.
struct OriginalLimits {
  std::optional<double> cpu_quota_cores;
  std::optional<std::uint64_t> memory_high_bytes;

  friend bool operator==(const OriginalLimits&, const OriginalLimits&) = default;
};

// Limits that berth cannot change: berth leaves the workload alone, or the host refuses the write.
struct FixedLimits {
  bool cpu = false;                 // the quota
  bool memory = false;              // memory.high
  bool life = false;                // it cannot be evicted
  bool memory_nodes = false;        // cpuset.mems, or its owner has set it
  std::set<Attribute> others = {};  // of Workload::others, or its owner has set them

  friend bool operator==(const FixedLimits&, const FixedLimits&) = default;
};

// One cgroup v2 subtree that holds one container, systemd unit or Spark executor.
struct Workload {
  std::string id;  // cgroup path below the v2 root, without a leading slash
  // Of this run, in berthd alone: documents do not have it, so there it is 0.
  std::uint64_t cgroup_id = 0;
  std::string service;  // instances of one service share profile and model; the id where none is declared
  WorkloadClass workload_class = WorkloadClass::best_effort;
  std::optional<int> vcpus;  // vCPUs asked for; only a latency-sensitive workload with vcpus is pinned
  std::optional<Isolation> isolation = {};  // nullopt: as interference.isolation says
  std::uint64_t memory_request_bytes = 0;
  CpuSet cpus;  // the vCPUs berth pinned it to; empty when not pinned
  // `cpus` are those that no service owns: it owns none of its own, and berth keeps it off those of others.
  bool shares = false;
  CpuSet home = {};  // ids of the domains in which it is at home, while it owns no vCPUs by its isolation
  CpuSet told_cpus = {};     // those that its admission promised, while it is not pinned; empty: none
  CpuSet memory_nodes = {};  // NUMA nodes to which berth bound its memory; empty when not bound
  // Values that berth set, of attributes that is_other() names (attribute.h); known only while a policy wants
  // them.
  std::map<Attribute, AttributeValue> others = {};
  // The vCPUs that its own configuration and its ancestors permit, berth's pins aside; nullopt when
  // unrestricted.
  std::optional<CpuSet> allowed_cpus;
  std::optional<double> cpu_quota_cores;
  std::optional<std::uint64_t> memory_high_bytes;
  int priority = 0;
  bool evictable = false;
  bool force = false;  // it is pinned to its vcpus even if it was measured to use more
  double created = 0;  // epoch seconds
  // Epoch seconds since when a Spark executor has a cgroup of its own, if berth moved it there.
  std::optional<double> leaf_since;
  std::optional<double> deadline;  // epoch seconds
  // The user that could write its name and its limits, which so favour it in nothing (model/ground.h);
  // nullopt: only root could.
  std::optional<std::uint32_t> user = {};
  std::optional<double> pinned_at;  // epoch seconds of berth's last change of `cpus`
  std::optional<SparkIdentity> spark;
  std::optional<std::string>
      spared;  // why it is never evicted: what else would end with it; nullopt: it may be
  std::vector<std::string> gpus;
  std::optional<OriginalLimits> original;
  std::optional<HeldLimit> held_cpu;                // berth's change of cpu_quota_cores
  std::optional<HeldLimit> held_memory;             // berth's change of memory_high_bytes
  std::optional<std::uint64_t> cpu_period_us = {};  // of the quota; nullopt: 100 ms, or there is no quota
  FixedLimits fixed;
  // Why berth changes nothing of it although a rule names it: it has vCPUs that another program gave it;
  // nullopt: berth manages it, as far as the snapshot tells.
  std::optional<std::string> left_alone = {};
  std::optional<double> straggled_at;   // epoch seconds of the last tick that found it a straggler
  std::optional<double> pressed_at;     // epoch seconds of the last tick at which it wanted back its loan
  std::optional<double> progressed_at;  // epoch seconds since when its progress has its present value
  std::optional<double> evicted_at;     // epoch seconds since when berth has been evicting it
  // Share of the last sample's time, 0..1, for which its own CPU quota kept it from running.
  std::optional<double> cpu_throttled;
  // Cores that it lacked in that time, because its quota kept threads from running that could run.
  std::optional<double> cpu_lacked = {};
  // Of a pinned service: share of the last ten seconds, 0..1, in which a thread of it waited for a vCPU
  // ("some" of cpu.pressure).
  std::optional<double> cpu_pressure = {};
  // Of the last sample's time, by performance counters; nullopt without them.
  std::optional<double> cpi;                 // cycles per instruction
  std::optional<double> llc_misses_per_s;    // of the last-level cache
  std::optional<double> cpu_time_s;          // CPU time used since it was made, seconds
  std::optional<std::uint64_t> cache_bytes;  // page cache that it has not used of late (inactive_file)
  std::vector<ProgressReport> progress;      // the last few, oldest first
  UsageWindow usage;

  friend bool operator==(const Workload&, const Workload&) = default;
};

// The attribute as the snapshot shows it. nullopt where berth set none, but for limits.
std::optional<AttributeValue> value_in(const Workload& workload, Attribute attribute);

}  // namespace berth::model
