// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/attribute.h"
#include "model/best_effort_cores.h"
#include "model/cpu_set.h"
#include "model/eviction_findings.h"
#include "model/oversell.h"
#include "model/placement_findings.h"
#include "model/straggler_findings.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace berth::model {

// Set an attribute of a workload's cgroup. A priority is a group's (BestEffortGroup), and vCPUs may be
// (OtherGroup).
struct Set {
  std::string workload;
  AttributeValue value;
  friend bool operator==(const Set&, const Set&) = default;
};

// Give a workload the vCPUs, the NUMA nodes or the priority back that it had before berth. A limit goes back
// by being set to its original, as it may go there in steps.
struct GiveBack {
  std::string workload;
  Attribute attribute;
  friend bool operator==(const GiveBack&, const GiveBack&) = default;
};

enum class EvictionStep { decommission, terminate, kill };

// End a workload, beginning with the step `how`. Each step has `grace_s` before the next.
struct Evict {
  std::string workload;
  EvictionStep how = EvictionStep::terminate;
  std::uint64_t frees_bytes = 0;
  double grace_s = 30;
  friend bool operator==(const Evict&, const Evict&) = default;
};

enum class Resource { cpu, memory };

struct Advertise {
  Resource resource = Resource::cpu;
  double factor = 1;
  double capacity = 0;  // cores or bytes
  SchedulingState state = SchedulingState::schedule;
  friend bool operator==(const Advertise&, const Advertise&) = default;
};

// One thing to do, and the reason for it. Explain, log, signals and the journal all read this one record.
struct Action {
  using What = std::variant<Set, GiveBack, Evict, Advertise>;

  What what;
  std::string policy;
  std::string decision;  // "d-" and 12 hex digits, the same for the same snapshot and settings
  std::string reason;    // in words, with numbers

  // The workload acted on; nullptr for an advertisement.
  const std::string* workload() const;
  // "evict", "advertise", or as the table of attributes has it: "pin", "unpin", "set-cpu-quota", ...
  const char* kind() const;
  // The attribute that it sets or gives back; nullopt where it does neither.
  std::optional<Attribute> attribute() const;
  // The value of this type that it sets; nullptr where it sets none.
  template <typename Value>
  const Value* sets() const {
    const Set* set = std::get_if<Set>(&what);
    return set != nullptr ? std::get_if<Value>(&set->value) : nullptr;
  }
  template <typename Value>
  Value* sets() {
    return const_cast<Value*>(std::as_const(*this).sets<Value>());
  }
  bool gives_back(Attribute attribute) const;

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

// An instance that owns no vCPUs by its isolation, after the plan (docs/decisions/levels.md).
struct SharedInstance {
  CpuSet home;         // ids of its domains
  CpuSet cpus;         // to which it is pinned; empty: to none
  double cores = 0;    // that it counts for: its use, or its request while that is not known
  double score = 0;    // as that of PlacedInstance, by what its neighbours do on average
  std::string reason;  // why it is at home there, in words, with numbers
  friend bool operator==(const SharedInstance&, const SharedInstance&) = default;
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
  use,       // it uses more than its vcpus
  quota,     // its CPU quota is below its vcpus, and throttles it
  place,     // it finds no place
  priority,  // best-effort work beside it has the same priority
};
const char* to_string(WarningCause cause);  // "use", "quota", "place", "priority"

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

// The vCPUs that best-effort workloads share: all that no latency-sensitive instance owns, less those that
// they leave to shared instances.
struct BestEffortPool {
  CpuSet cpus;
  std::map<int, BestEffortCores> domains = {};  // by the id of a domain in which shared instances are at home
  CpuSet reserved = {};                         // kept from best-effort work by interference.reserved
  double utilisation = 0;                       // 0..1
  friend bool operator==(const BestEffortPool&, const BestEffortPool&) = default;
};

// Work beside all workloads, while an instance owns vCPUs (OtherGroup).
struct OtherWork {
  CpuSet cpus;                              // to which it is confined; empty: no instance owns vCPUs
  std::vector<std::string> confined;        // ids of groups, ascending
  std::vector<WorkloadFinding> unconfined;  // groups that may run on owned vCPUs, and why; likewise
  friend bool operator==(const OtherWork&, const OtherWork&) = default;
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
  std::map<std::string, PlacedInstance> instances;    // by workload or pending id
  std::map<std::string, SharedInstance> shared = {};  // likewise
  std::vector<WorkloadFinding> unplaceable;
  BestEffortPool best_effort;
  std::vector<WorkloadFinding> unconfined;  // best-effort ones that cannot be kept off owned vCPUs, and why
  OtherWork others = {};
  std::map<std::string, WaitingInstance> waiting = {};  // by workload id
  std::vector<ServiceWarning> warnings = {};            // ascending by workload, then by cause
  // Of interference.reserved_cpus: vCPUs that the host does not have, and those that best-effort work runs on
  // in spite of `reserved`, because berth may use no others.
  CpuSet absent_reserved = {};
  CpuSet shared_reserved = {};
  friend bool operator==(const InterferenceFindings&, const InterferenceFindings&) = default;
};

// policies/quota/README.md. Ascending by workload.
struct QuotaFindings {
  std::vector<WorkloadFinding> lifted;    // their quota could only throttle bursts
  std::vector<WorkloadFinding> bursting;  // they have a burst, or get one
  friend bool operator==(const QuotaFindings&, const QuotaFindings&) = default;
};

// One member per policy; nullopt where it did not run.
struct Findings {
  std::optional<InterferenceFindings> interference;
  std::optional<StragglerFindings> straggler;
  std::optional<EvictionFindings> eviction;
  std::optional<OversellFindings> oversell;
  std::optional<PlacementFindings> placement;
  std::optional<QuotaFindings> quota = {};
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
