// SPDX-License-Identifier: Apache-2.0
#include "daemon/answers.h"

#include "daemon/daemon.h"
#include "daemon/ledger/held.h"
#include "daemon/report/capabilities.h"
#include "daemon/report/metrics.h"
#include "model/json.h"
#include "model/name.h"
#include "model/path.h"
#include "os/ancestors.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/outbox.h"
#include "os/proc_files.h"
#include "policies/decide.h"
#include "policies/explain.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/core.h>
#include <malloc.h>

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

void Answers::drop_documents() {
  drop_own_documents();
  from_.admissions.forget_node();
}

void Answers::drop_own_documents() {
  std::size_t bytes = 0;
  for (const auto* document : {&documents_.workloads, &documents_.snapshot, &documents_.plan,
                               &documents_.metrics, &documents_.profiles, &documents_.models}) {
    if (*document) bytes += (*document)->size();
  }
  documents_ = {};
  if (bytes > kLargeDocument) malloc_trim(0);
}

void Answers::count_workloads() {
  counts_ = {};
  for (const auto& workload : observer().snapshot().workloads) {
    if (workload.left_alone || from_.enforcement.left_alone().count(workload.id) > 0) {
      ++counts_.left_alone;
    } else if (workload.workload_class == model::WorkloadClass::latency_sensitive) {
      ++counts_.latency_sensitive;
    } else {
      ++counts_.best_effort;
    }
  }
}

std::string Answers::status_line() const {
  auto line = fmt::format("{}: {} latency-sensitive, {} best-effort workloads", mode(),
                          counts_.latency_sensitive, counts_.best_effort);
  if (counts_.left_alone > 0) line += fmt::format(", {} left alone", counts_.left_alone);
  if (const auto score = score_node()) line += fmt::format(", score {:.2f}", *score);
  if (from_.setup.reload_error) line += "; the last reload was rejected";
  return line;
}

Tick Answers::last_tick() const {
  return {observer(),
          from_.plan,
          from_.enforcement.holdings(),
          from_.enforcement.left_alone(),
          from_.overrides,
          policy_settings().interference.isolation};
}

StatusReport Answers::status_report() const {
  const auto& snapshot = observer().snapshot();
  Equipment equipment;
  equipment.systemd = from_.enforcement.systemd();
  equipment.pressure_triggers = from_.senses.pressure_capability();
  equipment.gpus = observer().gpu_capability();
  equipment.metrics = from_.metrics.capability();
  equipment.journal_problem = from_.enforcement.journal_problem();
  equipment.decision_log_problem = from_.messenger.log().problem();
  equipment.bus_problem = from_.messenger.bus().problem();
  equipment.polkit_problem = from_.messenger.bus().polkit_problem();

  StatusReport report;
  report.version = version();
  report.host = snapshot.host;
  report.mode = mode();
  const double wall_ahead_s = from_.setup.clock.wall_ahead_s();
  report.started = from_.setup.started + wall_ahead_s;
  report.ticks = from_.cost.ticks;
  report.woken_by_pressure = from_.senses.woken_by_pressure();
  report.placements = from_.cost.placements;
  report.interval_s = from_.senses.interval_s();
  report.sampling = sampling_report();
  report.learns = policy_settings().interference.learn;
  report.shared_domain = policy_settings().interference.shared_domain;
  report.capabilities = all_capabilities(from_.setup.hierarchy, snapshot.topology, equipment);
  report.workloads = counts_;
  report.score_node = score_node();
  report.best_effort_cpus = best_effort_cpus();
  if (const auto& found = from_.plan.findings.interference) {
    report.best_effort_domains = found->best_effort.domains;
    report.others = found->others;
  }
  report.owned_cpus = snapshot.owned_cpus;
  report.gpus = gpu_reports(snapshot);
  report.held = count_held(from_.enforcement.holdings());
  report.interrupts = from_.enforcement.interrupts();
  if (const auto& found = from_.plan.findings.straggler) {
    report.stragglers = static_cast<std::size_t>(
        std::ranges::count_if(found->tasks, [](const auto& task) { return task.second.straggler; }));
    report.relocations = found->relocate.size();
  }
  report.evictions = from_.enforcement.eviction_counts();
  report.oversell = from_.plan.findings.oversell;
  report.advertised = from_.standing.advertised;
  report.reservations = from_.admissions.size();
  report.undo_records = from_.enforcement.undo_records();
  report.dropped_to_journal = os::journal_outbox().dropped();
  report.dropped_to_systemd = os::systemd_outbox().dropped();
  for (const auto& [id, workload] : observer().found()) {
    if (!from_.overrides.keys(id, workload.cgroup->id()).empty()) ++report.overridden;
  }
  const auto memory = os::read_memory_use(from_.setup.options.proc_root / "self");
  report.memory_rss_bytes = memory ? memory->resident_bytes : 0;
  report.process_cpu_s = os::seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  report.decisions = from_.messenger.decisions();
  report.config_file = from_.setup.options.config_file.string();
  report.config_loaded = from_.setup.loaded + wall_ahead_s;
  report.config_error = from_.setup.reload_error;
  report.trial = daemon_.trial_report();
  report.config_mode = from_.setup.settings.mode == config::Mode::enforce ? "enforce" : "observe";
  report.enforce_problem = from_.enforcement.problem();
  return report;
}

std::string Answers::status_json() {
  StatusReport report = status_report();
  report.last_actions = from_.messenger.log().newest(kLastActions);
  // It walks the whole tree, and anybody may ask.
  if (!documents_.unused_rules) documents_.unused_rules = observer().unused_rules();
  report.unused_rules = *documents_.unused_rules;
  report.unplaceable = unplaceable();
  if (const auto& found = from_.plan.findings.interference) {
    report.warnings = found->warnings;
    report.reserved = found->best_effort.reserved;
    report.shared_reserved = found->shared_reserved;
    report.absent_reserved = found->absent_reserved;
  }
  return daemon::status_json(report);
}

std::vector<model::WorkloadFinding> Answers::unplaceable() const {
  if (!from_.plan.findings.interference) return {};
  auto findings = from_.plan.findings.interference->unplaceable;
  for (auto& finding : findings) {
    // The policy sees no request of such a workload, and would name that as the reason.
    const auto left_alone = from_.enforcement.left_alone().find(finding.workload);
    if (left_alone != from_.enforcement.left_alone().end())
      finding.reason = "berth leaves it alone: " + left_alone->second.reason;
  }
  return findings;
}

SamplingReport Answers::sampling_report() const {
  SamplingReport report;
  report.configured_interval_s = from_.setup.settings.tick_s;
  report.max_cpu = from_.setup.settings.sampling_max_cpu;
  report.history = from_.setup.settings.history;
  report.cpu = from_.senses.budget().cores();
  report.read_cpu_ms = from_.senses.budget().read_cpu_s() * 1000;
  if (observer().kernel().cost()) report.bpf_cpu = from_.senses.budget().kernel_cores();
  report.figures = observer().kernel().ways();
  report.blame = from_.senses.blame().cost(from_.setup.clock.now());
  report.blame_ends_in_s = from_.senses.blame().ends_in(from_.setup.clock.now());
  report.blamed_s = from_.senses.blame().seconds();
  return report;
}

std::string Answers::metrics_text() {
  return made_once(documents_.metrics,
                   [this] { return daemon::metrics_text(status_report(), workload_figures(last_tick())); });
}

std::string Answers::workloads_json() {
  return made_once(documents_.workloads, [this] { return daemon::workloads_json(last_tick()); });
}
std::string Answers::topology_json() { return model::to_json(observer().snapshot().topology); }
std::string Answers::snapshot_json() {
  return made_once(documents_.snapshot, [this] { return model::to_json(observer().snapshot()); });
}

std::string Answers::snapshot_since_json(double since) {
  return model::to_json_since(observer().snapshot(), since);
}

std::string Answers::plan_json() {
  return made_once(documents_.plan, [this] {
    const model::Plan& plan = plan_to_show();
    shown_.push_front({plan.time, plan.actions});
    std::size_t actions = 0;
    std::erase_if(shown_, [&](const ShownPlan& shown) {
      actions += shown.actions.size();
      return actions > kShownActions && &shown != &shown_.front();
    });
    if (shown_.size() > kShownPlans) shown_.pop_back();
    return model::to_json(plan);
  });
}

// In observe mode what enforcing from now on would begin with: the plan of the snapshot that is shown.
const model::Plan& Answers::plan_to_show() {
  if (from_.enforcement.enforces()) return from_.plan;
  if (!documents_.decided) documents_.decided = policies::decide(observer().snapshot(), policy_settings());
  return *documents_.decided;
}

// A decision of an earlier plan that a caller was shown; nullopt where there is none.
std::optional<model::DecisionExplanation> Answers::shown_decision(const std::string& id) const {
  for (const ShownPlan& shown : shown_) {
    const auto found = std::find_if(shown.actions.begin(), shown.actions.end(),
                                    [&](const model::Action& action) { return action.decision == id; });
    if (found != shown.actions.end())
      return model::DecisionExplanation{
          .id = id, .planned = *found, .planned_at = shown.time, .present = false};
  }
  return std::nullopt;
}

model::Result<std::string> Answers::explain_json(const std::string& subject) {
  const auto& snapshot = observer().snapshot();
  const auto& settings = policy_settings();
  const model::Plan& plan = plan_to_show();
  auto explanation = policies::explain(snapshot, plan, settings, subject);
  const bool is_workload = explanation.workload && !explanation.decision;
  const auto entries = is_workload ? std::vector<LogEntry>() : from_.messenger.log().of_decision(subject);
  const auto knows_nothing = [&explanation] {
    return !explanation.decision && !explanation.workload && !explanation.application && !explanation.other;
  };
  if (knows_nothing()) {
    explanation.decision = shown_decision(subject);
    if (!explanation.decision && !entries.empty())
      explanation.decision = {.id = subject, .planned = {}, .planned_at = {}, .present = false};
    if (explanation.decision) {
      const auto& planned = explanation.decision->planned;
      const std::string* id = planned ? planned->workload() : nullptr;
      if (id == nullptr && !entries.empty()) id = &entries.front().workload;
      if (id != nullptr) explanation.workload = policies::explain_workload(snapshot, plan, settings, *id);
    }
  }
  if (knows_nothing()) {
    for (const model::OwnedCpus& owned : snapshot.owned_cpus) {
      if (!owned.owner.empty() && model::names(subject, owned.owner))
        return model::fail(ErrorKind::gone,
                           fmt::format("{} is no workload of berth, which leaves it alone: {}", owned.owner,
                                       model::to_text(owned)));
    }
    if (const auto why = observer().why_ignored(subject))
      return model::fail(ErrorKind::gone, "berth leaves it alone, " + *why);
    return model::fail(
        ErrorKind::gone,
        fmt::format(
            "\"{}\" is neither a workload (`berthctl list` shows them) nor a decision (`berthctl log`)",
            subject));
  }
  if (explanation.workload) {
    const auto left_alone = from_.enforcement.left_alone().find(explanation.workload->workload.id);
    if (left_alone != from_.enforcement.left_alone().end())
      explanation.workload->left_alone = left_alone->second.reason;
  }
  return daemon::explain_json(explanation, entries);
}

std::string Answers::log_json(std::size_t limit) {
  return daemon::log_json(from_.messenger.log().newest(limit));
}

model::Result<std::string> Answers::find_log_json(const std::map<std::string, std::string>& filter,
                                                  std::size_t limit) {
  const auto wanted = parse_filter(filter);
  if (!wanted) return model::fail(wanted.error());
  return daemon::log_json(from_.messenger.log().find(*wanted, limit));
}

// Of a thousand services, each of these takes long to make.
std::string Answers::profiles_json() {
  return made_once(documents_.profiles,
                   [this] { return from_.learned.models().profiles_json(observer().snapshot().host); });
}

std::string Answers::models_json() {
  return made_once(documents_.models,
                   [this] { return from_.learned.models().models_json(policy_settings().interference); });
}

model::Result<void> Answers::import_profiles(const std::string& profiles) {
  auto imported = from_.learned.models().import(profiles);
  if (imported) os::log_info("learned profiles were imported");
  drop_own_documents();
  return imported;
}

model::Result<void> Answers::forget_profile(const std::string& service) {
  auto forgotten = from_.learned.models().forget(service);
  if (forgotten) os::log_info("service {}: what was learned is forgotten, on request", service);
  drop_own_documents();
  return forgotten;
}

model::Result<void> Answers::set_workload(const std::string& id,
                                          const std::map<std::string, std::string>& settings) {
  const auto found = observer().found().find(id);
  if (found == observer().found().end()) {
    return model::fail(ErrorKind::gone, no_such_workload(id));
  }
  if (settings.empty()) return model::fail(ErrorKind::invalid_input, "nothing to set");
  auto set = from_.overrides.set(id, found->second.cgroup->id(), settings);
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
    from_.messenger.publish(from_.enforcement.let_go(id, "it is latency-sensitive now"));
  return {};
}

model::Result<std::string> Answers::blame(const std::string& service) {
  const auto& workloads = observer().snapshot().workloads;
  if (std::none_of(workloads.begin(), workloads.end(), [&](const model::Workload& workload) {
        return workload.id == service || workload.service == service;
      })) {
    return model::fail(
        ErrorKind::gone,
        fmt::format("\"{}\" is neither a service nor a workload; `berthctl list` shows them", service));
  }
  const double now = from_.setup.clock.now();
  BlameSampling& blame = from_.senses.blame();
  blame.ask(service, now);
  from_.senses.follow_blame(now);
  return blame_json({service, now + from_.setup.clock.wall_ahead_s(), from_.setup.clock.wall_ahead_s(),
                     blame.answer(service), blame.ends_in(now)});
}

model::Result<std::string> Answers::admit(const std::string& request, double hold_s) {
  daemon_.take_changes();
  return finish(from_.admissions.admit(request, hold_s, from_.setup.clock.now()));
}

std::string Answers::reservations_json() {
  daemon_.take_changes();
  const double now = from_.setup.clock.now();
  end_reservations(now);
  return from_.admissions.json(now);
}

model::Result<std::string> Answers::cancel_reservation(const std::string& id) {
  daemon_.take_changes();
  const double now = from_.setup.clock.now();
  end_reservations(now);
  return finish(from_.admissions.cancel(id, now));
}

void Answers::end_reservations(double now) {
  auto entries = from_.admissions.expire(now);
  if (!entries.empty()) drop_documents();
  from_.messenger.record(std::move(entries));
}

model::Result<std::string> Answers::finish(model::Result<Admissions::Answer> answer) {
  if (!answer) return model::fail(answer.error());
  if (answer->changed) drop_own_documents();
  from_.messenger.record(answer->entries);
  return std::move(answer->text);
}

model::Result<const cgroup::FoundWorkload*> Answers::find_now(const std::string& id) {
  daemon_.take_changes();  // a run that has just begun is not the one before
  const auto found = observer().found().find(id);
  if (found == observer().found().end()) return model::fail(ErrorKind::gone, no_such_workload(id));
  return &found->second;
}

model::Result<std::string> Answers::evict(const std::string& id) {
  const auto target = find_now(id);
  if (!target) return model::fail(target.error());
  return from_.enforcement.evict_by_hand(**target, from_.overrides);
}

model::Result<void> Answers::report_progress(const std::string& id, double fraction) {
  const auto target = find_now(id);
  if (!target) return model::fail(target.error());
  return from_.senses.observer().progress().add(id, (*target)->cgroup->id(), from_.setup.clock.now(),
                                                fraction);
}

// Of nested matches the outermost is the workload, so that at most one of a process's groups is one.
std::optional<std::string> Answers::workload_of(pid_t pid, uid_t uid) const {
  const auto path = os::cgroup_of_process(from_.setup.options.proc_root, pid, uid);
  return os::find_around(path.value_or(""), [&](const std::string& id) {
    return observer().found().count(id) > 0 ? std::optional(id) : std::nullopt;
  });
}

model::Result<void> Answers::set_mode(std::string_view mode) { return daemon_.set_mode(mode); }
model::Result<std::string> Answers::restore() { return daemon_.restore(); }
model::Result<void> Answers::reload() { return daemon_.reload(); }

model::Result<std::string> Answers::begin_trial(const TrialCaller& caller, const std::string& a,
                                                const std::string& b) {
  return daemon_.begin_trial(caller, a, b);
}
model::Result<void> Answers::use_trial_side(const std::string& caller, std::string_view side,
                                            double lease_s) {
  return daemon_.use_trial_side(caller, side, lease_s);
}
model::Result<void> Answers::end_trial(const std::string& caller, bool keep) {
  return daemon_.end_trial(caller, keep);
}
void Answers::caller_left(const std::string& caller) { daemon_.caller_left(caller); }

std::string Answers::version() const { return BERTH_VERSION; }

std::optional<double> Answers::score_node() const {
  const auto& found = from_.plan.findings.interference;
  // It is about instances with vCPUs of their own. Where all of them share, it says nothing.
  if (!found || (found->instances.empty() && !found->shared.empty())) return std::nullopt;
  return found->score_node;
}

std::string Answers::best_effort_cpus() const {
  return from_.plan.findings.interference ? from_.plan.findings.interference->best_effort.cpus.to_string()
                                          : std::string();
}

std::vector<WorkloadView> Answers::workloads() const { return workload_views(last_tick()); }
std::optional<WorkloadView> Answers::workload(const std::string& id) const {
  return workload_view(last_tick(), id);
}
std::string Answers::log_level() const { return os::log_level(); }
model::Result<void> Answers::set_log_level(std::string_view level) { return os::set_log_level(level); }

}  // namespace berth::daemon
