// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/hierarchy.h"
#include "config/config.h"
#include "daemon/admit/admissions.h"
#include "daemon/announcer.h"
#include "daemon/enforce/actuators.h"
#include "daemon/enforce/enforcer.h"
#include "daemon/enforce/eviction_timer.h"
#include "daemon/enforce/evictor.h"
#include "daemon/enforce/leaves.h"
#include "daemon/enforce/shadow.h"
#include "daemon/ledger/decision_log.h"
#include "daemon/ledger/overrides.h"
#include "daemon/notify.h"
#include "daemon/observe/observer.h"
#include "daemon/observe/pressure_watch.h"
#include "daemon/observe/progress_files.h"
#include "daemon/observe/sampling_budget.h"
#include "daemon/observe/spark_watch.h"
#include "daemon/observe/straggler_watch.h"
#include "daemon/observe/used_shares.h"
#include "daemon/options.h"
#include "daemon/report/advertising.h"
#include "daemon/report/report_json.h"
#include "daemon/serve/bus_link.h"
#include "daemon/serve/control.h"
#include "daemon/serve/metrics_endpoint.h"
#include "model/error.h"
#include "model/plan.h"
#include "os/clock.h"
#include "os/lock_file.h"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::daemon {

// Documents that callers asked for since the last tick. Each is made once and serves all callers until the
// next.
struct Documents {
  std::optional<std::string> workloads;
  std::optional<std::string> snapshot;
  std::optional<std::string> plan;
  std::optional<std::string> metrics;
  std::optional<model::Plan> decided;  // of observe mode
};

// The wheel: each tick observes, decides, and carries out or only logs. Knows nothing of event loops.
class Daemon final : public Control {
 public:
  // Puts back what an earlier run left behind. Error where there is no cgroup v2 tree or no processor to
  // speak of, or where another berthd has the lock of this host or the undo journal.
  static model::Result<std::unique_ptr<Daemon>> start(const Options& options, config::Settings settings,
                                                      os::Clock clock = os::Clock());
  ~Daemon() override;

  void serve_bus(BusStarter starter) { bus_.serve(std::move(starter)); }
  // Metrics are served from here on, where the configuration wants it.
  void serve_metrics(sd_event* event);
  // No bus, no metrics and no pressure from here on: before the event loop that they run on ends.
  void leave_loop();
  // False while it is not known yet whether the bus answers.
  bool bus_settled() const { return bus_.is_settled(); }
  // For the event loop: readable when take_changes() has work.
  int changes_fd() const { return observer_->fd(); }
  void take_changes();
  // Calls `rose` on the loop's thread when something is newly under pressure, so that a tick should not wait.
  void watch_pressure(sd_event* event, std::function<void()> rose);
  // Evictions go on between ticks, from here on.
  void watch_evictions(sd_event* event);
  // Progress files are read as soon as they change, from here on.
  void watch_progress(sd_event* event);
  void tick();
  // From here on the kernel counts, where it can; until then, files are read.
  void begin_sampling();
  // For the event loop: readable when take_changes() has work of the kernel's to do; -1 where there is none.
  int kernel_events_fd() const { return observer_->kernel().events_fd(); }
  // Seconds from tick to tick: as configured, or longer where sampling would cost too much.
  double interval_s() const { return budget_.interval_s(settings_.tick_s, settings_.sampling_max_cpu); }
  // Whether it is longer.
  bool slowed() const { return interval_s() > settings_.tick_s; }
  Notify& notify() { return notify_; }
  // "enforce: 3 latency-sensitive, 5 best-effort workloads, score 0.08", for the service manager.
  std::string status_line() const;
  // Puts everything back; the last thing that is called.
  void stop();

  std::string status_json() override;
  std::string workloads_json() override;
  std::string topology_json() override;
  std::string snapshot_json() override;
  std::string plan_json() override;
  std::string log_json(std::size_t limit) override;
  model::Result<std::string> explain_json(const std::string& subject) override;
  std::string metrics_text() override;
  model::Result<void> set_mode(std::string_view mode) override;
  model::Result<void> set_workload(const std::string& id,
                                   const std::map<std::string, std::string>& settings) override;
  model::Result<void> report_progress(const std::string& id, double fraction) override;
  model::Result<std::string> admit(const std::string& request, double hold_s) override;
  std::string reservations_json() override;
  model::Result<std::string> cancel_reservation(const std::string& id) override;
  std::optional<std::string> workload_of(pid_t pid, uid_t uid) const override;
  model::Result<std::string> evict(const std::string& id) override;
  model::Result<std::string> restore() override;
  model::Result<void> reload() override;
  std::string version() const override;
  std::string mode() const override;
  std::optional<double> score_node() const override;
  WorkloadCounts counts() const override { return counts_; }
  std::string best_effort_cpus() const override;
  model::Advertised advertised() const override { return advertising_.advertised(); }
  std::vector<WorkloadView> workloads() const override;
  std::optional<WorkloadView> workload(const std::string& id) const override;
  std::string log_level() const override;
  model::Result<void> set_log_level(std::string_view level) override;

 private:
  Daemon(const Options& options, config::Settings settings, cgroup::Hierarchy hierarchy, os::Clock clock);

  // How long the loop may restore at once. The ticks do the rest.
  static constexpr std::chrono::milliseconds kRestoreBudget{2000};

  model::Result<void> open_actuators();
  model::Result<void> take_host_lock();
  model::Result<void> begin_enforcing();
  // Why the host could not be enforced on now; nullopt where it could.
  std::optional<std::string> enforce_problem() const;
  model::Result<void> follow_configured_mode();
  // Writes for as long as `budget`; restore_the_rest() does what is left then.
  cgroup::RestoreReport end_enforcing(const std::string& reason, std::chrono::milliseconds budget);
  void restore_the_rest();
  void reopen_what_failed();
  void decide();
  // A step of a tick that enforces; returns what it did.
  struct Step {
    const char* name;
    std::vector<LogEntry> (Daemon::*run)(double now);
  };
  static const std::array<Step, 10> kEnforcing;
  std::vector<LogEntry> decide_and_enforce(double now);
  bool workloads_changed();
  std::vector<LogEntry> follow_workloads(double now);
  std::vector<LogEntry> look(double now);
  std::vector<LogEntry> check_foreign(double now);
  std::vector<LogEntry> advance_under_way(double now);
  std::vector<LogEntry> assemble(double now);
  std::vector<LogEntry> plan(double now);
  std::vector<LogEntry> apply_plan(double now);
  std::vector<LogEntry> decide_in_shadow(double now);
  std::vector<LogEntry> carry_out_evictions(double now);
  // Of victims that became latency-sensitive, or are left alone, since.
  std::vector<LogEntry> let_go_of_spared(double now);
  void advance_evictions();
  // Whether executors are to have cgroups of their own.
  bool makes_leaves() const { return settings_.spark_watch && settings_.spark_leaf; }
  std::vector<LogEntry> divide_executors(double now);
  std::vector<LogEntry> put_back_leaves(const std::string& reason);
  void watch_spark();
  void keep_to_budget(double read_cpu_s);
  SamplingReport sampling_report() const;
  void count_workloads();
  std::vector<LogEntry> advertise();
  void learn_shares();
  Admissions::Node node();
  void end_reservations(double now);
  // Keeps the log, and the documents true.
  model::Result<std::string> finish(model::Result<Admissions::Answer> answer);
  void open_learned();
  void save_learned();
  void publish(std::vector<LogEntry> entries, const StragglerWatch::News& news = {});
  // Journal and decision log alone.
  void record(std::vector<LogEntry> entries);
  void write_down(const std::vector<LogEntry>& entries);

  // Forgets documents whose content has changed, and the host that newcomers are judged by.
  void drop_documents();
  void drop_own_documents();
  const model::Plan& plan_to_show();
  const model::Action* shown_action(const std::string& decision) const;
  StatusReport status_report() const;  // without the last actions
  const Holdings& holdings() const;
  const UnmanagedWorkloads& unmanaged() const;
  Tick last_tick() const { return {*observer_, plan_, holdings(), unmanaged(), *overrides_}; }
  const char* mode_name() const { return enforcer_ ? "enforce" : "observe"; }

  Options options_;
  os::Clock clock_;
  std::string boot_id_;  // empty: it cannot be read, and nothing is of this boot for certain
  config::Settings settings_;
  cgroup::Hierarchy hierarchy_;
  bool own_host_ = false;
  Notify notify_;
  std::unique_ptr<Observer> observer_;
  std::optional<os::LockFile> host_lock_;  // held as long as the host may be changed
  std::unique_ptr<Actuators> actuators_;   // null: journal_problem_ says why
  std::optional<std::string> journal_problem_;
  std::optional<Enforcer> enforcer_;  // while enforcing
  Evictor evictor_;                   // evicts nothing while observing
  EvictionTimer eviction_timer_;
  Leaves leaves_;
  Shadow shadow_;               // while observing
  std::uint64_t followed_ = 0;  // the generation of workloads whose holdings were looked at
  std::optional<Overrides> overrides_;
  std::unique_ptr<DecisionLog> decision_log_;
  model::Plan plan_;           // enforcing: carried out; observing: what the shadow would have done
  StragglerWatch stragglers_;  // over changes of mode
  Advertising advertising_;    // likewise
  std::optional<UsedShares> used_shares_;
  std::optional<Admissions> admissions_;
  Announcer announcer_;
  WorkloadCounts counts_;

  double started_ = 0;
  double config_loaded_ = 0;
  MetricsEndpoint metrics_;
  PressureWatch pressure_;
  ProgressFiles progress_files_;
  SparkWatch spark_;
  SamplingBudget budget_;
  std::uint64_t woken_by_pressure_ = 0;  // ticks
  bool woken_ = false;                   // the next tick is one
  std::optional<std::string> config_error_;
  bool mode_follows_ = false;  // the configured mode is new, or could not be had so far
  Documents documents_;
  std::deque<std::vector<model::Action>> shown_;  // of the plans that were asked for last, newest first
  std::uint64_t ticks_ = 0;
  double last_wall_ms_ = 0;
  double total_cpu_ms_ = 0;

  // The last member, and so the first to go: it calls back into everything above.
  BusLink bus_;
};

}  // namespace berth::daemon
