// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/host_lock.h"
#include "config/config.h"
#include "daemon/admit/admissions.h"
#include "daemon/announcer.h"
#include "daemon/answers.h"
#include "daemon/arrivals.h"
#include "daemon/enforcement.h"
#include "daemon/learned.h"
#include "daemon/ledger/overrides.h"
#include "daemon/messenger.h"
#include "daemon/notify.h"
#include "daemon/options.h"
#include "daemon/report/advertising.h"
#include "daemon/report/departures.h"
#include "daemon/senses.h"
#include "daemon/serve/control.h"
#include "daemon/serve/metrics_server.h"
#include "daemon/setup.h"
#include "daemon/trial.h"
#include "model/error.h"
#include "model/plan.h"
#include "model/standing.h"
#include "os/clock.h"
#include "policies/after.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::daemon {

// The order of a tick, the mode, and the configuration: each tick observes, decides, and carries out or only
// logs. Knows nothing of event loops.
class Daemon {
 public:
  // Puts back what an earlier run left behind. Error where there is no cgroup v2 tree or no processor to
  // speak of, or where another berthd has the lock of this host or the undo journal.
  static model::Result<std::unique_ptr<Daemon>> start(const Options& options, config::Settings settings,
                                                      os::Clock clock = os::Clock());
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon();

  // The calls of the bus.
  Control& control() { return answers_; }

  void serve_bus(BusStarter starter) { messenger_.bus().serve(std::move(starter)); }
  // Metrics are served from here on, where the configuration wants it.
  void serve_metrics(sd_event* event);
  // No bus, no metrics and no pressure from here on: before the event loop that they run on ends.
  void leave_loop();
  // False while it is not known yet whether the bus answers.
  bool bus_settled() const { return messenger_.bus().is_settled(); }
  // The senses wake the event loop between ticks.
  Senses& senses() { return *senses_; }
  // Notes the cgroups that appeared and vanished. If workloads appeared that should not wait for the next
  // tick, it calls the function of watch_arrivals().
  void take_changes();
  // `appeared` gets the seconds until place() is to be called, from here on.
  void watch_arrivals(std::function<void(double)> appeared) { appeared_ = std::move(appeared); }
  // Evictions go on between ticks, from here on.
  void watch_evictions(sd_event* event) { enforcement_.watch_evictions(event); }
  void tick();
  // Pins the workloads that appeared since the last tick. Reads and decides nothing else, so the next tick is
  // as it would be without this. Does nothing if a tick has come in between.
  void place();
  Notify& notify() { return notify_; }
  // For the service manager.
  std::string status_line() const { return answers_.status_line(); }
  // Puts everything back; the last thing that is called.
  void stop();

  // As in Control.
  model::Result<void> set_mode(std::string_view mode);
  model::Result<std::string> restore();
  model::Result<void> reload();
  model::Result<std::string> begin_trial(const TrialCaller& caller, std::string_view a, std::string_view b);
  model::Result<void> use_trial_side(const std::string& caller, std::string_view side, double lease_s);
  model::Result<void> end_trial(const std::string& caller, bool keep);
  void caller_left(const std::string& caller);
  // The trial that runs, or the one whose settings are kept; nullopt without.
  std::optional<TrialReport> trial_report() const;

 private:
  Daemon(std::unique_ptr<Setup> setup, std::optional<cgroup::HostLock> host_lock,
         std::unique_ptr<Senses> senses);

  model::Result<void> begin_enforcing();
  model::Result<void> follow_configured_mode();
  model::Result<void> switch_mode(std::string_view mode);
  // Ends the trial where its lease has run out.
  void expire_trial();
  // Error gone where the caller leads no trial.
  model::Result<void> owns_trial(const std::string& caller);
  void take_trial_settings(const config::Settings& settings, config::Mode file_mode);
  // Puts everything back to what was before the trial. Call it only while one runs.
  void finish_trial(const std::string& reason);
  cgroup::RestoreReport end_enforcing(const std::string& reason, std::chrono::milliseconds budget);
  cgroup::Discovery::Changes note_changes();
  // Runs `part`, adds its cost, and tells the service manager how berthd is.
  void measure(void (Daemon::*part)(), RunCost& cost);
  void whole_tick();
  void placement();
  void decide();
  // A step of a tick: its name, and the function that runs it and returns its log entries.
  struct Step {
    const char* name;
    std::vector<LogEntry> (*run)(Daemon& daemon, double now);
  };
  static const std::array<Step, 12> kEnforcing;
  static const std::array<Step, 6> kObserving;
  static const std::array<Step, 5> kEnforcingPlaces;
  static const std::array<Step, 5> kObservingPlaces;
  std::vector<LogEntry> take_steps(std::span<const Step> steps, double now);
  std::vector<LogEntry> look(double now);
  std::vector<LogEntry> advance(double now);
  std::vector<LogEntry> assemble();
  std::vector<LogEntry> blame();
  std::vector<LogEntry> plan();
  std::vector<LogEntry> read_new();
  std::vector<LogEntry> plan_places(double now);
  void take_plan(model::Plan plan);
  std::vector<LogEntry> observed();
  std::vector<LogEntry> show_untouched();
  Admissions::Node node();

  std::unique_ptr<Setup> setup_;
  Notify notify_;
  std::unique_ptr<Senses> senses_;
  Enforcement enforcement_;
  Overrides overrides_;
  Learned learned_;
  Admissions admissions_;
  Advertising advertising_;
  Departures departures_;        // over changes of mode
  model::Standing standing_;     // after the last plan
  model::Plan plan_;             // enforcing: carried out; observing: remembered as if it were
  policies::Outcomes outcomes_;  // of that plan
  Announcer announcer_;
  MetricsEndpoint metrics_;
  bool mode_follows_ = false;  // the configured mode is new, or could not be had so far
  // The readings and holdings are of these settings and this mode, so that workloads can be placed by them.
  bool may_place_ = false;
  Arrivals arrivals_;
  std::set<std::string> arrived_;  // ids of workloads that no tick has placed
  std::function<void(double)> appeared_;
  std::optional<Trial> trial_;
  std::optional<TrialReport> kept_trial_;  // its settings stay until the next reload
  struct {
    std::string caller;  // as in TrialCaller; "": none yet
    std::string reason;
  } trial_ended_;  // the last trial that its caller did not keep
  TickCost cost_;
  Answers answers_;

  // The last member, and so the first to go: the bus calls back into everything above.
  Messenger messenger_;
};

}  // namespace berth::daemon
