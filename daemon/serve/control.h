// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/log_entry.h"
#include "daemon/ledger/views.h"
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

// The caller that leads a trial.
struct TrialCaller {
  std::string key;  // of its connection to the bus; no other one has it as long as berthd runs
  pid_t pid = 0;    // 0 where the bus does not know it
  uid_t uid = 0;
};

// The calls that the daemon serves on the bus. They come on the loop's thread only. Each answers from the
// state after the last tick, and none blocks. Calls that write (set_mode, restore) act before they return.
// The formats are those of docs/contract.
class Control {
 public:
  virtual ~Control() = default;

  virtual std::string status_json() = 0;
  virtual std::string workloads_json() = 0;
  virtual std::string topology_json() = 0;
  virtual std::string snapshot_json() = 0;
  // The same with the samples later than `since` (epoch seconds) only.
  virtual std::string snapshot_since_json(double since) = 0;
  virtual std::string plan_json() = 0;
  // Newest first, at most `limit` entries; 0 means as many as an answer may hold (10,000).
  virtual std::string log_json(std::size_t limit) = 0;
  // Of those that match: `filter` has the keys since, workload, policy and kind (daemon/ledger/log_filter.h).
  // Error invalid_input.
  virtual model::Result<std::string> find_log_json(const std::map<std::string, std::string>& filter,
                                                   std::size_t limit) = 0;
  // Explains berth's decisions about a workload, or the outcome of a decision ("d-..."): berth.explain/1.
  // Error gone where there is neither.
  virtual model::Result<std::string> explain_json(const std::string& subject) = 0;
  // Not JSON: metrics in the text format of Prometheus.
  virtual std::string metrics_text() = 0;

  // "observe" or "enforce". Error invalid_input for another word. Error unavailable where the host does not
  // let berth enforce; the message names the missing thing.
  virtual model::Result<void> set_mode(std::string_view mode) = 0;
  // Keys class, service, vcpus, isolation, deadline, priority, evictable, force; for this run of the
  // workload. All or nothing. Error gone where there is no such workload, invalid_input naming the key.
  virtual model::Result<void> set_workload(const std::string& id,
                                           const std::map<std::string, std::string>& settings) = 0;
  // Takes a workload's own report of its progress, 0..1; the next tick uses it. Error gone where there is no
  // such workload, invalid_input for another number.
  virtual model::Result<void> report_progress(const std::string& id, double fraction) = 0;
  // Decides whether a new workload may start (a berth.request/1 document): a berth.admission/1 document. If
  // so, its place is held for `hold_s` seconds (1 to 86400; 0: as configured) or until it comes. Error
  // invalid_input.
  virtual model::Result<std::string> admit(const std::string& request, double hold_s) = 0;
  // Admitted workloads that have not come yet: a berth.reservations/1 document.
  virtual std::string reservations_json() = 0;
  // Ends a reservation before its time; returns the decision that had made it. Error gone where there is none
  // of that id.
  virtual model::Result<std::string> cancel_reservation(const std::string& id) = 0;
  // The workload that a process runs in. nullopt where it is in none, has ended, or does not belong to `uid`:
  // then the number may be another process's.
  virtual std::optional<std::string> workload_of(pid_t pid, uid_t uid) const = 0;
  // Ends a best-effort workload, step by step (daemon/enforce/evictor.h); returns the decision's id. Error
  // gone where there is no such workload. Error refused, with the reason, for a workload that is never
  // evicted, and in observe mode.
  virtual model::Result<std::string> evict(const std::string& id) = 0;
  // The sums that interference models are learned from (berth.profiles/1), and the models (berth.models/1).
  virtual std::string profiles_json() = 0;
  virtual std::string models_json() = 0;
  // Adds the sums of a berth.profiles/1 document. Error invalid_input; refused where there would be too many.
  virtual model::Result<void> import_profiles(const std::string& profiles) = 0;
  // Forgets all that was learned of a service. Error gone where that is nothing.
  virtual model::Result<void> forget_profile(const std::string& service) = 0;
  // The work that ran while a service's threads, or a workload's, waited: a berth.blame/1 document. A
  // question begins the counting, which goes on for a time (sampling.blame_linger). Error gone where there is
  // no such service.
  virtual model::Result<std::string> blame(const std::string& service) = 0;
  // Puts every changed attribute back and switches to observe, so that the next tick does not change it
  // again. Returns a berth.restore/1 document.
  virtual model::Result<std::string> restore() = 0;
  // Reads the configuration again. Error invalid_input with file, line and column: the old settings stay.
  virtual model::Result<void> reload() = 0;

  // Begins a trial of two sides, each the text of a configuration file that comes after the others
  // (config/trial_settings.h). Changes nothing yet. Returns the differences: a berth.trial-begin/1 document.
  // Error invalid_input with the place of a fault. Error refused for settings that a trial may not change or
  // that do not differ in effect, where this host cannot have one of them, and while another trial runs.
  virtual model::Result<std::string> begin_trial(const TrialCaller& caller, const std::string& a,
                                                 const std::string& b) = 0;
  // Puts the settings of side "a" or "b" in force. The trial ends after `lease_s` seconds (1 to 86400)
  // without another call. Error gone where the caller leads no trial (any more): the message says why it
  // ended.
  virtual model::Result<void> use_trial_side(const std::string& caller, std::string_view side,
                                             double lease_s) = 0;
  // Ends the trial: everything is as before, or with `keep` the settings of the present side stay in force
  // until the next reload or restart. Error gone, as above.
  virtual model::Result<void> end_trial(const std::string& caller, bool keep) = 0;
  // The caller has left the bus, and a trial of it ends.
  virtual void caller_left(const std::string& caller) = 0;

  virtual std::string version() const = 0;
  virtual std::string mode() const = 0;
  virtual std::optional<double> score_node() const = 0;
  virtual WorkloadCounts counts() const = 0;
  // cpulist; empty before the first tick.
  virtual std::string best_effort_cpus() const = 0;
  // The host's advertisement; nothing before the first tick with one.
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

// The daemon calls it on the loop's thread, at the end of the tick or call that made the change. By then
// Control answers with the new state.
class Listener {
 public:
  virtual ~Listener() = default;

  // A lost link stays lost: the daemon then drops the listener and makes a new one later.
  virtual Link link() const = 0;
  // Why the link is lost.
  virtual std::string problem() const = 0;
  // Why polkit cannot be asked for permission; nullopt where it can.
  virtual std::optional<std::string> polkit_problem() const = 0;

  virtual void workload_appeared(const std::string& id) = 0;
  virtual void workload_vanished(const std::string& id) = 0;
  // A change of the workload other than of its measured figures.
  virtual void workload_changed(const std::string& id) = 0;
  // A change that berth made: a value of a cgroup's attribute, a step of an eviction, or what the host
  // advertises.
  virtual void changed(const LogEntry& entry) = 0;
  virtual void straggler_found(const StragglerNews& news) = 0;
  virtual void relocation_needed(const StragglerNews& news) = 0;
  // Every entry of the decision log, also of what is only observed, or failed.
  virtual void decided(const LogEntry& entry) = 0;
  virtual void mode_changed() = 0;
  // Node-wide figures have changed: workload counts, best-effort vCPUs, the advertisement.
  virtual void node_changed() = 0;
};

}  // namespace berth::daemon
