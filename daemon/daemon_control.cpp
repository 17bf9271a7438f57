// SPDX-License-Identifier: Apache-2.0
// The Control interface: the calls that the daemon serves while it runs.
#include "cgroup/path.h"
#include "daemon/daemon.h"
#include "daemon/ledger/action_log.h"
#include "daemon/ledger/message_ids.h"
#include "daemon/report/capabilities.h"
#include "daemon/report/metrics.h"
#include "model/json.h"
#include "model/name.h"
#include "os/log.h"
#include "os/proc_files.h"
#include "policies/decide.h"
#include "policies/explain.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <malloc.h>
#include <syslog.h>

namespace berth::daemon {

using model::ErrorKind;

namespace {

constexpr std::size_t kShownPlans = 16;
constexpr std::size_t kShownActions = 2000;  // of all of them but the newest

constexpr std::size_t kLastActions = 5;
// Memory in which a larger document was made lies between memory that stays in use. It is given back once a
// tick.
constexpr std::size_t kLargeDocument = 65536;

std::string no_such_workload(const std::string& id) {
  return fmt::format("\"{}\": there is no such workload; `berthctl list` shows them", id);
}

template <typename Make>
const std::string& made_once(std::optional<std::string>& document, Make make) {
  if (!document) {
    document = make();
    if (document->size() > kLargeDocument) malloc_trim(0);
  }
  return *document;
}

}  // namespace

void Daemon::drop_documents() {
  drop_own_documents();
  if (admissions_) admissions_->forget_node();
}

void Daemon::drop_own_documents() {
  std::size_t bytes = 0;
  for (const auto* document :
       {&documents_.workloads, &documents_.snapshot, &documents_.plan, &documents_.metrics}) {
    if (*document) bytes += (*document)->size();
  }
  documents_ = {};
  if (bytes > kLargeDocument) malloc_trim(0);
}

StatusReport Daemon::status_report() const {
  const auto& snapshot = observer_->snapshot();
  Equipment equipment;
  if (actuators_) equipment.systemd = actuators_->systemd();
  equipment.pressure_triggers = pressure_.capability();
  equipment.gpus = observer_->gpu_capability();
  equipment.metrics = metrics_.capability();
  equipment.journal_problem = journal_problem_;
  equipment.decision_log_problem = decision_log_->problem();
  equipment.bus_problem = bus_.problem();
  equipment.polkit_problem = bus_.polkit_problem();

  StatusReport report;
  report.version = version();
  report.host = snapshot.host;
  report.mode = mode();
  const double wall_ahead_s = clock_.wall_ahead_s();
  report.started = started_ + wall_ahead_s;
  report.ticks = ticks_;
  report.woken_by_pressure = woken_by_pressure_;
  report.interval_s = interval_s();
  report.sampling = sampling_report();
  report.last_wall_ms = last_wall_ms_;
  report.total_cpu_ms = total_cpu_ms_;
  report.capabilities = all_capabilities(hierarchy_, snapshot.topology, equipment);
  report.workloads = counts_;
  report.score_node = score_node();
  report.best_effort_cpus = best_effort_cpus();
  report.gpus = gpu_reports(snapshot);
  report.held = count_held(holdings());
  report.stragglers = stragglers_.stragglers();
  report.relocations = stragglers_.relocations();
  report.evictions = evictor_.counts();
  report.oversell = plan_.findings.oversell;
  report.advertised = advertising_.advertised();
  report.reservations = admissions_->size();
  report.undo_records = actuators_ ? actuators_->journal().size() : 0;
  for (const auto& [id, workload] : observer_->found()) {
    if (!overrides_->keys(id, workload.cgroup->id()).empty()) ++report.overridden;
  }
  const auto memory = os::read_memory_use(options_.proc_root / "self");
  report.memory_rss_bytes = memory ? memory->resident_bytes : 0;
  report.config_file = options_.config_file.string();
  report.config_loaded = config_loaded_ + wall_ahead_s;
  report.config_error = config_error_;
  report.config_mode = settings_.mode == config::Mode::enforce ? "enforce" : "observe";
  report.enforce_problem = enforce_problem();
  return report;
}

std::string Daemon::status_json() {
  StatusReport report = status_report();
  report.last_actions = decision_log_->newest(kLastActions);
  return daemon::status_json(report);
}

SamplingReport Daemon::sampling_report() const {
  SamplingReport report;
  report.configured_interval_s = settings_.tick_s;
  report.max_cpu = settings_.sampling_max_cpu;
  report.cpu = budget_.cores();
  report.read_cpu_ms = budget_.read_cpu_s() * 1000;
  if (observer_->kernel().cost()) report.bpf_cpu = budget_.kernel_cores();
  report.figures = observer_->kernel().rungs();
  return report;
}

std::string Daemon::metrics_text() {
  return made_once(documents_.metrics,
                   [this] { return daemon::metrics_text(status_report(), workload_figures(last_tick())); });
}

std::string Daemon::workloads_json() {
  return made_once(documents_.workloads, [this] { return daemon::workloads_json(last_tick()); });
}
std::string Daemon::topology_json() { return model::to_json(observer_->snapshot().topology); }
std::string Daemon::snapshot_json() {
  return made_once(documents_.snapshot, [this] { return model::to_json(observer_->snapshot()); });
}

std::string Daemon::plan_json() {
  return made_once(documents_.plan, [this] {
    const model::Plan& plan = plan_to_show();
    shown_.push_front(plan.actions);
    std::size_t actions = 0;
    std::erase_if(shown_, [&](const std::vector<model::Action>& of) {
      actions += of.size();
      return actions > kShownActions && &of != &shown_.front();
    });
    if (shown_.size() > kShownPlans) shown_.pop_back();
    return model::to_json(plan);
  });
}

// In observe mode what enforcing from now on would begin with: the plan of the snapshot that is shown.
const model::Plan& Daemon::plan_to_show() {
  if (enforcer_) return plan_;
  if (!documents_.decided) documents_.decided = policies::decide(observer_->snapshot(), settings_.policies);
  return *documents_.decided;
}

// An action of an earlier plan that a caller was shown; nullptr where there is none.
const model::Action* Daemon::shown_action(const std::string& decision) const {
  for (const auto& actions : shown_) {
    const auto found = std::find_if(actions.begin(), actions.end(),
                                    [&](const model::Action& action) { return action.decision == decision; });
    if (found != actions.end()) return &*found;
  }
  return nullptr;
}

model::Result<std::string> Daemon::explain_json(const std::string& subject) {
  const auto& snapshot = observer_->snapshot();
  const auto& settings = settings_.policies;
  const model::Plan& plan = plan_to_show();
  auto explanation = policies::explain(snapshot, plan, settings, subject);
  const bool is_workload = explanation.workload && !explanation.decision;
  const auto entries = is_workload ? std::vector<LogEntry>() : decision_log_->of_decision(subject);
  if (!entries.empty() && !explanation.decision) {
    explanation.decision = {.id = subject, .planned = {}};
    explanation.workload = policies::explain_workload(snapshot, plan, settings, entries.front().workload);
  }
  if (!explanation.decision && !explanation.workload && !explanation.application) {
    if (const model::Action* shown = shown_action(subject)) {
      explanation.decision = {.id = subject, .planned = *shown};
      if (const auto* id = shown->workload())
        explanation.workload = policies::explain_workload(snapshot, plan, settings, *id);
    }
  }
  if (!explanation.decision && !explanation.workload && !explanation.application) {
    return model::fail(
        ErrorKind::gone,
        fmt::format(
            "\"{}\" is neither a workload (`berthctl list` shows them) nor a decision (`berthctl log`)",
            subject));
  }
  if (explanation.workload) {
    const auto left_alone = unmanaged().find(explanation.workload->workload.id);
    if (left_alone != unmanaged().end()) explanation.workload->unmanaged = left_alone->second.reason;
  }
  return daemon::explain_json(explanation, entries);
}

std::string Daemon::log_json(std::size_t limit) { return daemon::log_json(decision_log_->newest(limit)); }

model::Result<void> Daemon::set_mode(std::string_view mode) {
  if (mode != "observe" && mode != "enforce") {
    return model::fail(ErrorKind::invalid_input,
                       fmt::format("mode \"{}\": must be observe or enforce", mode));
  }
  if (mode == "observe") mode_follows_ = false;
  if (mode == mode_name()) return {};
  if (mode == "enforce") {
    if (auto begun = begin_enforcing(); !begun) {
      return model::fail(begun.error().context("cannot enforce"));
    }
    mode_follows_ = false;
  } else {
    end_enforcing("switched to observe mode", kRestoreBudget);
  }
  announce_event(kMessageModeChanged, LOG_NOTICE, fmt::format("berth's mode is {} now", mode), mode);
  publish({});
  notify_.status(status_line());
  return {};
}

model::Result<void> Daemon::set_workload(const std::string& id,
                                         const std::map<std::string, std::string>& settings) {
  const auto found = observer_->found().find(id);
  if (found == observer_->found().end()) {
    return model::fail(ErrorKind::gone, no_such_workload(id));
  }
  if (settings.empty()) return model::fail(ErrorKind::invalid_input, "nothing to set");
  auto set = overrides_->set(id, found->second.cgroup->id(), settings);
  if (!set && set.error().kind() == ErrorKind::invalid_input) return set;
  if (!set)
    os::log_warning("cannot save the settings of {}, so they end with berthd: {}", id, set.error().message());
  drop_documents();
  std::vector<std::string> changed;
  changed.reserve(settings.size());
  for (const auto& [key, value] : settings) {
    changed.push_back(value.empty() ? key + " as configured" : fmt::format("{} {}", key, value));
  }
  os::log_info("{}: {}, for this run", id, model::joined(changed, ", "));
  const auto wanted = settings.find("class");
  if (wanted != settings.end() && wanted->second == "latency-sensitive")
    publish(evictor_.let_go(id, clock_.now(), "it is latency-sensitive now"));
  return {};
}

model::Result<std::string> Daemon::admit(const std::string& request, double hold_s) {
  take_changes();
  return finish(admissions_->admit(request, hold_s, clock_.now()));
}

std::string Daemon::reservations_json() {
  take_changes();
  const double now = clock_.now();
  end_reservations(now);
  return admissions_->json(now);
}

model::Result<std::string> Daemon::cancel_reservation(const std::string& id) {
  take_changes();
  const double now = clock_.now();
  end_reservations(now);
  return finish(admissions_->cancel(id, now));
}

model::Result<std::string> Daemon::finish(model::Result<Admissions::Answer> answer) {
  if (!answer) return model::fail(answer.error());
  if (answer->changed) drop_own_documents();
  record(answer->entries);
  return std::move(answer->text);
}

model::Result<void> Daemon::report_progress(const std::string& id, double fraction) {
  take_changes();  // a run that has just begun is not the one before
  const auto found = observer_->found().find(id);
  if (found == observer_->found().end()) return model::fail(ErrorKind::gone, no_such_workload(id));
  return observer_->progress().add(id, found->second.cgroup->id(), clock_.now(), fraction);
}

// Of nested matches the outermost is the workload, so that at most one of a process's groups is one.
std::optional<std::string> Daemon::workload_of(pid_t pid, uid_t uid) const {
  auto path = os::cgroup_of_process(options_.proc_root, pid, uid);
  while (path && !path->empty()) {
    if (observer_->found().count(*path) > 0) return path;
    path->resize(cgroup::parent_path(*path).size());
  }
  return std::nullopt;
}

model::Result<std::string> Daemon::restore() {
  const bool enforced = enforcer_.has_value();
  mode_follows_ = false;
  const auto report = end_enforcing("restore was requested", kRestoreBudget);
  if (enforced) {
    announce_event(kMessageModeChanged, LOG_NOTICE,
                   "everything was put back on request; berth's mode is observe now", "observe");
    publish({});
    notify_.status(status_line());
  }
  return restore_json(report);
}

model::Result<void> Daemon::reload() {
  notify_.reloading();
  auto loaded = config::load(options_.config_file);
  if (!loaded) {
    config_error_ = loaded.error().message();
    announce_event(
        kMessageReloadRejected, LOG_ERR,
        fmt::format("the configuration was not reloaded, the old one stays in force: {}", *config_error_),
        mode_name());
    notify_.ready(status_line());
    return model::fail(loaded.error());
  }
  mode_follows_ |= loaded->mode != settings_.mode;
  settings_ = std::move(*loaded);
  drop_documents();
  config_error_.reset();
  config_loaded_ = clock_.now();
  // Known words only, so this cannot fail: the configuration checked it.
  (void)os::set_log_level(settings_.log_level);
  observer_->set_history(settings_.history);
  pressure_.set_share(settings_.pressure_threshold);
  watch_spark();
  metrics_.keep(settings_.metrics_listen, config_loaded_);
  const auto changes = observer_->set_rules(settings_.rules);
  for (const auto& warning : changes.warnings) os::log_warning("{}", warning);
  admissions_->add_arrived(changes.appeared);
  decision_log_->set_retention(settings_.log_retention_s);
  reopen_what_failed();
  if (enforcer_ && !makes_leaves()) publish(put_back_leaves("spark.leaf is never, or spark.watch is false"));
  if (enforcer_) {
    enforcer_->retry_failed();
    evictor_.retry_failed();
    if (settings_.foreign_writer == config::ForeignWriter::reassert) enforcer_->retry_foreign();
  }
  announce_event(kMessageReloaded, LOG_INFO, fmt::format("reloaded {}", options_.config_file.string()),
                 mode_name());
  auto followed = follow_configured_mode();
  notify_.ready(status_line());
  return followed;
}

model::Result<void> Daemon::follow_configured_mode() {
  // A mode chosen over the bus stays, unless the file now says something else than it did.
  if (!mode_follows_ || options_.observe) return {};
  const auto switched = set_mode(settings_.mode == config::Mode::enforce ? "enforce" : "observe");
  if (switched) return {};
  os::log_error("{}; staying in observe mode", switched.error().message());
  return model::fail(
      switched.error().context("the configuration was reloaded, but its mode was not taken over"));
}

void Daemon::reopen_what_failed() {
  if (!actuators_) {
    if (const auto opened = open_actuators(); !opened)
      os::log_warning("undo journal: {}", opened.error().message());
  }
  if (decision_log_->problem() && !decision_log_->is_waiting()) {
    decision_log_ =
        std::make_unique<DecisionLog>(options_.state_dir, settings_.log_retention_s, clock_, boot_id_);
  }
}

std::string Daemon::version() const { return BERTH_VERSION; }
std::string Daemon::mode() const { return mode_name(); }

std::optional<double> Daemon::score_node() const {
  if (!plan_.findings.interference) return std::nullopt;
  return plan_.findings.interference->score_node;
}

std::string Daemon::best_effort_cpus() const {
  return plan_.findings.interference ? plan_.findings.interference->best_effort.cpus.to_string()
                                     : std::string();
}

std::vector<WorkloadView> Daemon::workloads() const { return workload_views(last_tick()); }
std::optional<WorkloadView> Daemon::workload(const std::string& id) const {
  return workload_view(last_tick(), id);
}
std::string Daemon::log_level() const { return os::log_level(); }
model::Result<void> Daemon::set_log_level(std::string_view level) { return os::set_log_level(level); }

}  // namespace berth::daemon
