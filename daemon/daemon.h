// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/hierarchy.h"
#include "config/config.h"
#include "daemon/actuators.h"
#include "daemon/advertising.h"
#include "daemon/bus_news.h"
#include "daemon/control.h"
#include "daemon/decision_log.h"
#include "daemon/enforcer.h"
#include "daemon/eviction_timer.h"
#include "daemon/evictor.h"
#include "daemon/leaves.h"
#include "daemon/metrics_endpoint.h"
#include "daemon/notify.h"
#include "daemon/observer.h"
#include "daemon/options.h"
#include "daemon/overrides.h"
#include "daemon/pressure_watch.h"
#include "daemon/progress_files.h"
#include "daemon/report_json.h"
#include "daemon/reservations.h"
#include "daemon/sampling_budget.h"
#include "daemon/shadow.h"
#include "daemon/spark_watch.h"
#include "daemon/straggler_watch.h"
#include "daemon/used_shares.h"
#include "model/error.h"
#include "model/plan.h"
#include "policies/placement/host.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::daemon {

// Makes whoever serves the bus; asked again from time to time while there is none.
using BusStarter = std::function<model::Result<std::unique_ptr<Listener>>(Control&)>;

// Epoch seconds now.
double epoch_now();
using Clock = std::function<double()>;

// What was asked for since the last tick, made once for all who ask before the next.
struct Documents {
  std::optional<std::string> workloads;
  std::optional<std::string> snapshot;
  std::optional<std::string> plan;
  std::optional<std::string> metrics;
  std::optional<model::Plan> decided;  // of observe mode
  std::optional<policies::Host> host;  // for those who want to be let in
  std::optional<std::string> reservations;
};

// The wheel: each tick observes, decides, and carries out or only logs. Knows nothing of event loops.
class Daemon final : public Control {
 public:
  // Puts back what an earlier run left behind. Error where there is no cgroup v2 tree or no processor to
  // speak of, or where another berthd holds the undo journal.
  static model::Result<std::unique_ptr<Daemon>> start(const Options& options, config::Settings settings,
                                                      Clock clock = epoch_now);
  ~Daemon() override;

  void serve_bus(BusStarter starter) { bus_starter_ = std::move(starter); }
  // Metrics are served from here on, where the configuration wants it.
  void serve_metrics(sd_event* event);
  // No bus, no metrics and no pressure from here on: before the event loop that they run on ends.
  void leave_loop();
  // False while it is not known yet whether the bus answers.
  bool bus_settled() const { return !listener_ || listener_->link() != Link::connecting; }
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
  Daemon(const Options& options, config::Settings settings, cgroup::Hierarchy hierarchy, Clock clock);

  model::Result<void> open_actuators();
  model::Result<void> begin_enforcing();
  // Why the host could not be enforced on now; nullopt where it could.
  std::optional<std::string> enforce_problem() const;
  model::Result<void> follow_configured_mode();
  cgroup::RestoreReport end_enforcing(const std::string& reason);
  void reopen_what_failed();
  void decide();
  std::vector<LogEntry> decide_and_enforce(double now);
  std::vector<LogEntry> decide_in_shadow(double now);
  std::vector<LogEntry> carry_out_evictions(double now);
  // Of victims that became latency-sensitive, or are left alone, since.
  std::vector<LogEntry> let_go_of_spared(double now);
  void advance_evictions();
  // Whether executors are to have cgroups of their own.
  bool makes_leaves() const { return settings_.spark_watch && settings_.spark_leaf; }
  std::vector<LogEntry> divide_executors(double now);
  std::vector<LogEntry> put_back_leaves(const std::string& reason);
  void look(double now);
  void watch_spark();
  void keep_to_budget(double read_cpu_s);
  SamplingReport sampling_report() const;
  void count_workloads();
  std::vector<LogEntry> advertise();
  void learn_shares();
  void open_learned();
  void save_learned();
  void end_reservations(double now);
  void meet_reservations(double now);
  void show_pending();
  policies::Host host_as_advertised();
  std::vector<std::string> kept_gpus(const Reservation& reservation) const;
  std::vector<model::PendingWorkload> with_gpus(std::vector<model::PendingWorkload> awaited) const;
  policies::Host host_with_promises(const std::string& but);
  policies::Host& host_for_newcomers();
  model::Admission judge_newcomer(const model::PendingWorkload& request);
  void say_findings();
  void say_stragglers(const StragglerWatch::News& news);
  void say_gpus();
  void say_unmanaged(const UnmanagedWorkloads& before);
  void connect_bus();
  void say_no_bus(const std::string& problem);
  std::optional<std::string> bus_problem() const;
  void publish(const std::vector<LogEntry>& entries, const StragglerWatch::News& news = {});
  // Journal and decision log alone.
  void record(const std::vector<LogEntry>& entries);

  // Where what they say has changed.
  void drop_documents();
  const model::Plan& plan_to_show();
  const model::Action* shown_action(const std::string& decision) const;
  StatusReport status_report() const;  // without the last actions
  const Holdings& holdings() const;
  const UnmanagedWorkloads& unmanaged() const;
  Tick last_tick() const { return {*observer_, plan_, holdings(), unmanaged(), *overrides_}; }
  const char* mode_name() const { return enforcer_ ? "enforce" : "observe"; }

  Options options_;
  Clock clock_;
  config::Settings settings_;
  cgroup::Hierarchy hierarchy_;
  bool own_host_ = false;
  Notify notify_;
  std::unique_ptr<Observer> observer_;
  std::unique_ptr<Actuators> actuators_;  // null: journal_problem_ says why
  std::optional<std::string> journal_problem_;
  std::optional<Enforcer> enforcer_;  // while enforcing
  Evictor evictor_;                   // evicts nobody while observing
  EvictionTimer eviction_timer_;
  Leaves leaves_;
  Shadow shadow_;  // while observing
  std::optional<Overrides> overrides_;
  std::unique_ptr<DecisionLog> decision_log_;
  model::Plan plan_;           // enforcing: carried out; observing: what the shadow would have done
  StragglerWatch stragglers_;  // over changes of mode
  Advertising advertising_;    // likewise
  bool state_file_fails_ = false;
  std::optional<UsedShares> used_shares_;
  bool shares_file_fails_ = false;
  std::optional<Reservations> reservations_;
  std::vector<std::string> arrived_;  // workloads that no tick has taken in yet
  WorkloadCounts counts_;
  std::set<std::string> said_findings_;

  BusStarter bus_starter_;
  BusNews bus_news_;
  std::optional<std::string> bus_problem_ = "not connected yet";  // as last said; none once it was up
  bool bus_problem_said_ = false;
  double bus_tried_at_ = 0;

  double started_ = 0;
  double config_loaded_ = 0;
  MetricsEndpoint metrics_;
  PressureWatch pressure_;
  ProgressFiles progress_files_;
  SparkWatch spark_;
  SamplingBudget budget_;
  bool slowed_said_ = false;
  std::uint64_t woken_by_pressure_ = 0;  // ticks
  bool woken_ = false;                   // the next tick is one
  std::optional<std::string> config_error_;
  bool mode_follows_ = false;  // the configured mode is new, or could not be had so far
  Documents documents_;
  std::deque<std::vector<model::Action>> shown_;  // of the plans that were asked for last, newest first
  std::uint64_t ticks_ = 0;
  double last_wall_ms_ = 0;
  double total_cpu_ms_ = 0;

  // Last, and so the first to go: it calls back into everything above.
  std::unique_ptr<Listener> listener_;
};

}  // namespace berth::daemon
