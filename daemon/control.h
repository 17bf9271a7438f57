// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/straggler_watch.h"
#include "model/error.h"
#include "model/oversell.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace berth::daemon {

// One workload as the last tick left it; a value, safe to keep.
struct WorkloadView {
  std::string id;
  std::string service;
  std::string workload_class;  // "latency-sensitive" or "best-effort"
  std::string kind;            // "systemd-service", "podman", ...: cgroup::to_string(Kind)
  std::string matched_by;
  std::uint32_t vcpus = 0;  // 0: none asked for
  std::string pinned_cpus;  // cpulist; empty when berth has not pinned it
  bool managed = true;
  std::string unmanaged_reason;     // empty when managed
  std::optional<double> cpu_cores;  // mean cores over the last tick; nullopt before the second reading
  std::optional<std::uint64_t> memory_bytes;
  std::optional<double> progress;  // 0..1, the newest that it reported
  std::optional<double> score;     // interference score; nullopt when not placed
  // CPU quota in cores and memory.high in bytes, now and before berth; nullopt: no limit.
  std::optional<double> cpu_quota;
  std::optional<std::uint64_t> memory_high;
  std::optional<double> original_cpu_quota;
  std::optional<std::uint64_t> original_memory_high;
  // "extended", "reclaimed" or "preempted" where berth holds the limit, else empty.
  std::string cpu_held;
  std::string memory_held;

  friend bool operator==(const WorkloadView&, const WorkloadView&) = default;
};

struct WorkloadCounts {
  std::uint32_t latency_sensitive = 0;
  std::uint32_t best_effort = 0;
  std::uint32_t unmanaged = 0;  // counted here only, whatever their class
};

// What the daemon offers to whoever carries its bus name. Called on the loop's thread only; every call
// answers from what the last tick left and none blocks, except those that write (set_mode, restore), which
// act before they return. The formats are those of docs/contract.md.
class Control {
 public:
  virtual ~Control() = default;

  virtual std::string status_json() = 0;
  virtual std::string workloads_json() = 0;
  virtual std::string topology_json() = 0;
  virtual std::string snapshot_json() = 0;
  virtual std::string plan_json() = 0;
  // Newest first, at most `limit` entries; 0 means as many as an answer may hold (10,000).
  virtual std::string log_json(std::size_t limit) = 0;
  // What berth decided of a workload and why, or what became of a decision ("d-..."): berth.explain/1. Error
  // gone where there is neither.
  virtual model::Result<std::string> explain_json(const std::string& subject) = 0;
  // Not JSON: metrics in the text format of Prometheus.
  virtual std::string metrics_text() = 0;

  // "observe" or "enforce". Error invalid_input for another word; unavailable, saying what is missing, where
  // the host does not let berth enforce.
  virtual model::Result<void> set_mode(std::string_view mode) = 0;
  // Keys class, service, vcpus, deadline, priority, evictable; for this run of the workload. All or nothing.
  // Error gone for a workload there is none of, invalid_input naming the key.
  virtual model::Result<void> set_workload(const std::string& id,
                                           const std::map<std::string, std::string>& settings) = 0;
  // How far a workload says it is, 0..1; the next tick takes it in. Error gone for a workload there is none
  // of, invalid_input for another number.
  virtual model::Result<void> report_progress(const std::string& id, double fraction) = 0;
  // Whether a workload that is to start may (a berth.request/1 document): a berth.admission/1 document. If
  // so, its place is held for so many seconds (1 to 86400; 0: as configured) or until it comes. Error
  // invalid_input.
  virtual model::Result<std::string> admit(const std::string& request, double hold_s) = 0;
  // Those that were let in and have not come yet: a berth.reservations/1 document.
  virtual std::string reservations_json() = 0;
  // Ends a reservation before its time; the decision that had made it. Error gone where there is none of
  // that id.
  virtual model::Result<std::string> cancel_reservation(const std::string& id) = 0;
  // The workload that a process runs in; nullopt where it is in none, has ended, or is not that user's: its
  // number may be another process's by now.
  virtual std::optional<std::string> workload_of(pid_t pid, uid_t uid) const = 0;
  // Ends a best-effort workload, step by step (daemon/evictor.h); the decision's id. Error gone for a
  // workload there is none of, refused, saying why, for one that is not evicted, and in observe mode.
  virtual model::Result<std::string> evict(const std::string& id) = 0;
  // Puts every changed attribute back and goes to observe, so that the next tick does not change it again;
  // a berth.restore/1 document.
  virtual model::Result<std::string> restore() = 0;
  // Reads the configuration again. Error invalid_input with file, line and column: the old settings stay.
  virtual model::Result<void> reload() = 0;

  virtual std::string version() const = 0;
  virtual std::string mode() const = 0;
  virtual std::optional<double> score_node() const = 0;
  virtual WorkloadCounts counts() const = 0;
  // cpulist; empty before the first tick.
  virtual std::string best_effort_cpus() const = 0;
  // What the node says that it can hold; nothing before the first tick that says so.
  virtual model::Advertised advertised() const = 0;
  // Ascending by id.
  virtual std::vector<WorkloadView> workloads() const = 0;
  // nullopt where there is no such workload.
  virtual std::optional<WorkloadView> workload(const std::string& id) const = 0;

  // "trace", "debug", "info", "warning", "error" or "critical", as in the configuration's log level.
  virtual std::string log_level() const = 0;
  // Until the next reload. Error invalid_input for another word.
  virtual model::Result<void> set_log_level(std::string_view level) = 0;
};

enum class Link { connecting, up, lost };

// Told by the daemon what happened, on the loop's thread, at the end of the tick or call in which it did. By
// then Control answers with the new state.
class Listener {
 public:
  virtual ~Listener() = default;

  // Lost is for good: the daemon then drops the listener and makes a new one later.
  virtual Link link() const = 0;
  // Why it is lost.
  virtual std::string problem() const = 0;
  // Why polkit cannot be asked who may change things; nullopt where it can.
  virtual std::optional<std::string> polkit_problem() const = 0;

  virtual void workload_appeared(const std::string& id) = 0;
  virtual void workload_vanished(const std::string& id) = 0;
  // Something of the workload other than its measured figures.
  virtual void workload_changed(const std::string& id) = 0;
  virtual void pinned(const std::string& workload, const std::string& cpus, const std::string& decision) = 0;
  virtual void unpinned(const std::string& workload, const std::string& decision) = 0;
  // `attribute` is "cpu.max" or "memory.high", the values are its text.
  virtual void quota_changed(const std::string& workload, const std::string& attribute,
                             const std::string& old_value, const std::string& new_value,
                             const std::string& decision) = 0;
  // `step` is "decommission", "terminate", "kill" or "end", `memory_bytes` what it used just before.
  virtual void evicted(const std::string& workload, const std::string& step, std::uint64_t memory_bytes,
                       const std::string& decision) = 0;
  virtual void straggler_found(const StragglerNews& news) = 0;
  virtual void relocation_needed(const StragglerNews& news) = 0;
  // `resource` is "cpu" or "memory", the states are those of docs/contract.md.
  virtual void scheduling_state_changed(const std::string& resource, const std::string& before,
                                        const std::string& after, const std::string& reason,
                                        const std::string& decision) = 0;
  virtual void mode_changed() = 0;
  // Node-wide figures (workload counts, best-effort vCPUs, what is advertised) are not what they were.
  virtual void node_changed() = 0;
};

}  // namespace berth::daemon
