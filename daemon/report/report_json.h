// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/writer.h"
#include "daemon/enforce/evictor.h"
#include "daemon/ledger/held.h"
#include "daemon/ledger/log_entry.h"
#include "daemon/ledger/views.h"
#include "daemon/observe/blame_sampling.h"
#include "daemon/observe/observer.h"
#include "daemon/report/interrupts_report.h"
#include "daemon/report/trial_json.h"
#include "ebpf/collector.h"
#include "model/capability.h"
#include "model/explanation.h"
#include "model/plan.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::daemon {

// The sources of figures and the cost of sampling; CPU in cores.
struct SamplingReport {
  double configured_interval_s = 0;
  double max_cpu = 0;
  int history = 0;  // samples kept per workload
  double cpu = 0;
  std::optional<double> bpf_cpu;  // of `cpu`, at context switches
  double read_cpu_ms = 0;         // of a reading
  std::vector<ebpf::FigureWay> figures;
  std::optional<BlameCostReport> blame;   // nullopt without a question
  std::optional<double> blame_ends_in_s;  // nullopt where it stays
  std::array<double, kCulpritKinds> blamed_s{};
};

// A question about the culprits of waits, and the answer.
struct BlameReport {
  std::string service;
  double time = 0;          // epoch seconds
  double wall_ahead_s = 0;  // to be added to `answer.since`
  BlameSampling::Answer answer;
  std::optional<double> ends_in_s;
};
// berth.blame/1 (docs/contract/documents.md).
std::string blame_json(const BlameReport& report);

// A GPU, and the workloads that use it, ascending.
struct GpuReport {
  model::Gpu gpu;
  std::vector<std::string> workloads;
};
// From the snapshot.
std::vector<GpuReport> gpu_reports(const model::Snapshot& snapshot);

// How often something ran since berthd started, and its cost.
struct RunCost {
  std::uint64_t count = 0;
  double last_wall_ms = 0;
  double total_cpu_ms = 0;

  double mean_cpu_ms() const { return count == 0 ? 0 : total_cpu_ms / static_cast<double>(count); }
};

// The content of berth.status/1 (docs/contract/documents.md).
struct StatusReport {
  std::string version;
  std::string host;
  std::string mode;
  double started = 0;
  RunCost ticks;
  std::uint64_t woken_by_pressure = 0;  // of the ticks
  RunCost placements;                   // between ticks
  double interval_s = 0;
  SamplingReport sampling;
  // Of the settings, for callers that make observations as berthd does.
  bool learns = true;
  model::DomainKind shared_domain = model::DomainKind::llc;
  std::vector<model::Capability> capabilities;
  WorkloadCounts workloads;
  std::optional<double> score_node;
  std::string best_effort_cpus;
  std::map<int, model::BestEffortCores> best_effort_domains;  // of the last plan, by domain
  // Of the last plan; of workloads that berth leaves alone with that reason.
  std::vector<model::WorkloadFinding> unplaceable;
  std::vector<model::OwnedCpus> owned_cpus;     // by other programs
  model::OtherWork others;                      // of the last plan
  std::vector<model::ServiceWarning> warnings;  // likewise
  // Of interference.reserved_cpus, likewise: kept from best-effort work, not kept from it, not there.
  model::CpuSet reserved;
  model::CpuSet shared_reserved;
  model::CpuSet absent_reserved;
  std::vector<GpuReport> gpus;
  HeldCounts held;
  std::optional<InterruptsReport> interrupts;  // nullopt where they stay where they are
  std::size_t stragglers = 0;
  std::size_t relocations = 0;  // stragglers that this host cannot help
  EvictionCounts evictions;
  // Of the last plan, where the policy ran; and the advertised part of it.
  std::optional<model::OversellFindings> oversell;
  model::Advertised advertised;
  std::size_t reservations = 0;
  std::size_t undo_records = 0;
  // Messages that were dropped, because journald or systemd did not take them in time.
  std::uint64_t dropped_to_journal = 0;
  std::uint64_t dropped_to_systemd = 0;
  std::size_t overridden = 0;  // workloads with settings of their run
  std::uint64_t memory_rss_bytes = 0;
  double process_cpu_s = 0;
  DecisionCounts decisions;
  std::string config_file;
  double config_loaded = 0;
  std::optional<std::string> config_error;
  std::optional<TrialReport> trial;
  std::vector<cgroup::UnusedRule> unused_rules;
  std::string config_mode;                     // the mode of the configuration
  std::optional<std::string> enforce_problem;  // why enforcing is not possible on this host
  std::vector<LogEntry> last_actions;          // newest first
};

// State after a tick, for questions between two ticks.
struct Tick {
  const Observer& observer;
  const model::Plan& plan;
  const Holdings& holdings;  // after the plan was carried out; the snapshot has those before it
  const LeftAloneWorkloads& left_alone;
  const Overrides& overrides;
  model::Isolation isolation = {};  // of services whose rule says nothing
};

// vCPUs that a workload requests, also where it is left alone. In a snapshot such a workload requests none,
// so that no policy counts it in.
std::optional<int> vcpus_asked_for(const Tick& tick, const model::Workload& workload);

// The level of a service, by its rule or by the settings; nullopt for best-effort work.
std::optional<model::Isolation> isolation_of(const Tick& tick, const model::Workload& workload);

// The plan's warnings of a workload.
std::vector<model::ServiceWarning> warnings_of(const model::Plan& plan, const std::string& id);

// Why berth leaves the workload alone; nullptr where it does not.
const std::string* why_left_alone(const Tick& tick, const model::Workload& workload);

// The plan's place for a workload; nullptr where it is not placed.
const model::PlacedInstance* placed_instance(const model::Plan& plan, const std::string& id);
// Each one line, without a trailing newline.
std::string status_json(const StatusReport& report);
std::string workloads_json(const Tick& tick);
std::string log_json(const std::vector<LogEntry>& entries);
// With the log's entries of its decision.
std::string explain_json(const model::Explanation& explanation, const std::vector<LogEntry>& entries);
std::string restore_json(const cgroup::RestoreReport& report);

// Ascending by id.
std::vector<WorkloadView> workload_views(const Tick& tick);
std::optional<WorkloadView> workload_view(const Tick& tick, const std::string& id);

}  // namespace berth::daemon
