// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/borrowing.h"
#include "model/cpu_set.h"
#include "model/oversell.h"
#include "model/placement_findings.h"
#include "model/spark_findings.h"
#include "model/straggler_findings.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace berth::model {

// Bind a workload's tasks to exactly these vCPUs (cpuset.cpus; AllowedCPUs= of a unit).
struct PinAction {
  std::string workload;
  CpuSet cpus;
  friend bool operator==(const PinAction&, const PinAction&) = default;
};

// Give a pinned workload its affinity from before berth back.
struct UnpinAction {
  std::string workload;
  friend bool operator==(const UnpinAction&, const UnpinAction&) = default;
};

struct SetCpuQuotaAction {
  std::string workload;
  std::optional<double> cpu_quota_cores;  // nullopt: no limit
  friend bool operator==(const SetCpuQuotaAction&, const SetCpuQuotaAction&) = default;
};

struct SetMemoryHighAction {
  std::string workload;
  std::optional<std::uint64_t> memory_high_bytes;  // nullopt: no limit
  friend bool operator==(const SetMemoryHighAction&, const SetMemoryHighAction&) = default;
};

// Bind a workload's memory to these NUMA nodes (cpuset.mems; AllowedMemoryNodes= of a unit).
struct SetMemoryNodesAction {
  std::string workload;
  std::optional<CpuSet> nodes;  // numbers of NUMA nodes; nullopt: as before berth
  friend bool operator==(const SetMemoryNodesAction&, const SetMemoryNodesAction&) = default;
};

// Let a workload run only while nothing else in its parent cgroup wants the vCPU (cpu.idle; CPUWeight=idle of
// a unit), or give its priority from before berth back.
struct SetCpuIdleAction {
  std::string workload;
  bool idle = false;  // false: as before berth
  friend bool operator==(const SetCpuIdleAction&, const SetCpuIdleAction&) = default;
};

enum class EvictionStep { decommission, terminate, kill };

// End a workload, beginning with the step `how`. Each step has `grace_s` before the next.
struct EvictAction {
  std::string workload;
  EvictionStep how = EvictionStep::terminate;
  std::uint64_t frees_bytes = 0;
  double grace_s = 30;
  friend bool operator==(const EvictAction&, const EvictAction&) = default;
};

enum class Resource { cpu, memory };

struct AdvertiseAction {
  Resource resource = Resource::cpu;
  double factor = 1;
  double capacity = 0;  // cores or bytes
  SchedulingState state = SchedulingState::schedule;
  friend bool operator==(const AdvertiseAction&, const AdvertiseAction&) = default;
};

// One thing to do, and the reason for it. Explain, log, signals and the journal all read this one record.
struct Action {
  std::variant<PinAction, UnpinAction, SetCpuQuotaAction, SetMemoryHighAction, SetMemoryNodesAction,
               SetCpuIdleAction, EvictAction, AdvertiseAction>
      what;
  std::string policy;
  std::string decision;  // "d-" and 12 hex digits, the same for the same snapshot and settings
  std::string reason;    // in words, with numbers

  // The workload acted on; nullptr for an advertisement.
  const std::string* workload() const;
  // "pin", "unpin", "set-cpu-quota", "set-memory-high", "set-memory-nodes", "set-cpu-idle", "evict",
  // "advertise".
  const char* kind() const;

  friend bool operator==(const Action&, const Action&) = default;
};

enum class ModelOrigin { fallback, given, fitted };  // "default", "given", "fitted" in JSON

// The place of an instance after the plan, and its interference there (docs/decisions/interference.md).
struct PlacedInstance {
  CpuSet cpus;
  double cpu_sc = 0;
  double cpu_ss = 0;
  double score = 0;
  double pressure = 0;  // u of its service
  ModelOrigin model = ModelOrigin::fallback;
  std::string model_reason;
  friend bool operator==(const PlacedInstance&, const PlacedInstance&) = default;
};

// Why a pinned instance waits for vCPUs; the first of these that holds.
enum class WaitCause {
  quota,        // its own CPU quota throttles it
  vcpus,        // it keeps nearly all of its vCPUs busy
  best_effort,  // best-effort work runs on its vCPUs
  unknown,
};
const char* to_string(WaitCause cause);  // "quota", "vcpus", "best-effort", "unknown"

// A pinned instance whose threads wait for a vCPU for too long (docs/decisions/waiting.md).
struct WaitingInstance {
  double runq_latency_s = 0;  // the smallest 99th percentile of the samples that it is judged by
  WaitCause cause = WaitCause::unknown;
  int vcpus = 0;        // the number that it asks for; 0: it does not ask for more
  CpuSet quieter = {};  // vCPUs with less best-effort work; empty where that is not the cause
  std::string reason;   // in words, with numbers
  friend bool operator==(const WaitingInstance&, const WaitingInstance&) = default;
};

// Why a pin, or its lack, can harm a service.
enum class WarningCause {
  use,    // it uses more than its vcpus
  quota,  // its CPU quota is below its vcpus, and throttles it
  place,  // it finds no place
};
const char* to_string(WarningCause cause);  // "use", "quota", "place"

// A warning to the operator about a service, before berth harms it (docs/decisions/pinning.md, warnings).
struct ServiceWarning {
  std::string workload;
  WarningCause cause = WarningCause::use;
  std::optional<int> vcpus = {};  // the number that would do; nullopt: none is known
  std::string reason;             // in words, with numbers
  friend bool operator==(const ServiceWarning&, const ServiceWarning&) = default;
};

struct WorkloadFinding {
  std::string workload;
  std::string reason;
  friend bool operator==(const WorkloadFinding&, const WorkloadFinding&) = default;
};

// The vCPUs that best-effort workloads share: all that no latency-sensitive instance owns.
struct BestEffortPool {
  CpuSet cpus;
  double utilisation = 0;  // 0..1
  friend bool operator==(const BestEffortPool&, const BestEffortPool&) = default;
};

struct InterferenceFindings {
  std::string weighting;
  std::string search;
  double score_node = 0;
  // The score of the same instances if the kernel placed them; nullopt where none is placed.
  std::optional<double> score_unpinned;
  std::optional<double> lower_bound;  // nullopt where the search gives no bound
  std::optional<double> gap;          // the share of score_node above it
  std::string search_reason;       // in words: how good the placement is, and why no more moves; may be empty
  std::vector<std::string> moved;  // ids whose pin stood and is exchanged for a better place, ascending
  std::map<int, double> domains;   // score by domain id
  std::map<std::string, PlacedInstance> instances;  // by workload or pending id
  std::vector<WorkloadFinding> unplaceable;
  BestEffortPool best_effort;
  std::vector<WorkloadFinding> unconfined;  // best-effort ones that cannot be kept off owned vCPUs, and why
  std::map<std::string, WaitingInstance> waiting = {};  // by workload id
  std::vector<ServiceWarning> warnings = {};            // ascending by workload, then by cause
  CpuSet absent_reserved = {};  // vCPUs of interference.reserved_cpus that the host does not have
  std::optional<BorrowingFindings> borrowing = {};  // nullopt where interference.borrow is off
  friend bool operator==(const InterferenceFindings&, const InterferenceFindings&) = default;
};

// One member per policy; nullopt where it did not run.
struct Findings {
  std::optional<InterferenceFindings> interference;
  std::optional<StragglerFindings> straggler;
  std::optional<SparkFindings> spark;
  std::optional<OversellFindings> oversell;
  std::optional<PlacementFindings> placement;
  friend bool operator==(const Findings&, const Findings&) = default;
};

struct Plan {
  std::string host;
  double time = 0;          // of the snapshot
  double wall_ahead_s = 0;  // likewise
  std::vector<Action> actions;
  Findings findings;
  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace berth::model
