// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include "cgroup/host_lock.h"
#include "daemon/ledger/action_log.h"
#include "daemon/ledger/message_ids.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/resident_memory.h"
#include "policies/decide.h"
#include "policies/spark/hold.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

using model::ErrorKind;

// Share of the tick's interval that changing cgroups may take; what is left waits for the next tick.
constexpr double kApplyShare = 0.5;

bool is_own_host(const cgroup::Hierarchy& hierarchy) {
  const auto own = cgroup::find_hierarchy({}, "/proc");
  std::error_code ignored;
  return own && std::filesystem::equivalent(own->root, hierarchy.root, ignored);
}

void append(std::vector<LogEntry>& entries, std::vector<LogEntry> more) {
  entries.insert(entries.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// sd_booted(3) without its library call: the test that it documents.
bool runs_systemd() {
  std::error_code ignored;
  return std::filesystem::is_directory("/run/systemd/system", ignored);
}

}  // namespace

Daemon::Daemon(const Options& options, config::Settings settings, cgroup::Hierarchy hierarchy,
               os::Clock clock)
    : options_(options),
      clock_(std::move(clock)),
      boot_id_(cgroup::read_boot_id(options_.proc_root).value_or("")),
      settings_(std::move(settings)),
      hierarchy_(std::move(hierarchy)),
      own_host_(is_own_host(hierarchy_)),
      evictor_({.proc_root = options_.proc_root,
                .units = [this] { return actuators_ ? actuators_->units() : nullptr; },
                .systemd_runs = own_host_ && runs_systemd(),
                .monotonic = [] { return os::monotonic_s(); }}),
      leaves_({.cgroup_root = hierarchy_.root,
               .proc_root = options_.proc_root,
               .scopes = [this] { return actuators_ ? actuators_->scopes() : nullptr; },
               .systemd_runs = own_host_ && runs_systemd(),
               .monotonic = [] { return os::monotonic_s(); },
               .hands = cgroup::kernel_hands(options_.proc_root)}),
      advertising_(options.runtime_dir),
      started_(clock_.now()),
      config_loaded_(started_),
      metrics_([this] { return metrics_text(); }),
      pressure_(options.proc_root, settings_.pressure_threshold),
      progress_files_(options.proc_root),
      spark_(clock_) {
  hierarchy_.clock = clock_;
}

Daemon::~Daemon() = default;

model::Result<std::unique_ptr<Daemon>> Daemon::start(const Options& options, config::Settings settings,
                                                     os::Clock clock) {
  auto hierarchy = cgroup::find_hierarchy(options.cgroup_root, options.proc_root);
  if (!hierarchy) return model::fail(hierarchy.error());
  std::unique_ptr<Daemon> daemon(
      new Daemon(options, std::move(settings), std::move(*hierarchy), std::move(clock)));

  // First of all, as files of an earlier daemon are read once, and then removed.
  if (const auto locked = daemon->take_host_lock(); !locked && locked.error().kind() == ErrorKind::refused)
    return model::fail(locked.error());

  auto observer = Observer::start(daemon->hierarchy_, daemon->settings_.rules, options.proc_root,
                                  options.sys_root, daemon->settings_.history);
  if (!observer) return model::fail(observer.error());
  daemon->observer_ = std::move(*observer);
  daemon->watch_spark();
  daemon->decision_log_ = std::make_unique<DecisionLog>(options.state_dir, daemon->settings_.log_retention_s,
                                                        daemon->clock_, daemon->boot_id_);
  if (const auto& problem = daemon->decision_log_->problem()) os::log_warning("{}", *problem);
  std::optional<std::string> warning;
  daemon->overrides_.emplace(options.runtime_dir, warning);
  if (warning) os::log_warning("some settings made with berthctl set are lost: {}", *warning);
  daemon->overrides_->keep_if(
      [&root = daemon->hierarchy_.root](const std::string& id, std::uint64_t cgroup_id) {
        const auto living = cgroup::Cgroup::open(root, id);
        return living && (*living)->id() == cgroup_id;
      });

  daemon->open_learned();
  if (const auto opened = daemon->open_actuators(); !opened) {
    if (opened.error().kind() == ErrorKind::refused) return model::fail(opened.error());
    os::log_warning("undo journal: {}; staying in observe mode", opened.error().message());
  }
  for (const auto& capability : cgroup::capabilities(daemon->hierarchy_)) {
    if (!capability.available) os::log_info("{}: {}", capability.name, capability.detail);
  }
  if (daemon->settings_.mode == config::Mode::enforce && !options.observe) {
    if (const auto begun = daemon->begin_enforcing(); !begun) {
      daemon->mode_follows_ = true;
      os::log_error("cannot enforce: {}; staying in observe mode", begun.error().message());
    }
  }
  return daemon;
}

void Daemon::begin_sampling() {
  if (!settings_.ebpf) {
    observer_->use(KernelSampling::off("switched off by sampling.ebpf = false"));
  } else if (!own_host_) {
    observer_->use(KernelSampling::off(hierarchy_.root.string() + " is not this kernel's own cgroup tree"));
  } else if (std::error_code ignored; std::filesystem::exists(hierarchy_.root / "cgroup.type", ignored)) {
    // Only the root has no type. The programs would count cgroups that cannot be seen here.
    observer_->use(KernelSampling::off(hierarchy_.root.string() + " is not the root of the cgroup tree"));
  } else {
    observer_->use(KernelSampling::start(hierarchy_.root, options_.sys_root, options_.runtime_dir));
  }
  for (const auto& rung : observer_->kernel().rungs()) {
    if (!rung.available) os::log_info("{} by eBPF: {}", rung.figure, rung.detail);
  }
  // Of the kernel's types, which take some ten MiB, nothing is needed any more.
  os::release_start_memory();
}

void Daemon::watch_spark() {
  spark_.keep(options_.proc_root, options_.sparkd_socket,
              settings_.spark_watch ? std::optional(settings_.spark_interval_s) : std::nullopt);
}

model::Result<void> Daemon::take_host_lock() {
  if (host_lock_) return {};
  auto lock = cgroup::lock_host(hierarchy_.root, options_.runtime_dir);
  if (!lock) return model::fail(lock.error());
  host_lock_ = std::move(*lock);
  return {};
}

model::Result<void> Daemon::open_actuators() {
  const auto locked = take_host_lock();
  using Units = Actuators::Units;
  const Units units = !own_host_       ? Units::directly_in_other_tree
                      : runs_systemd() ? Units::through_systemd
                                       : Units::directly_without_systemd;
  auto actuators = locked ? Actuators::open(hierarchy_, options_.runtime_dir, options_.sys_root, units)
                          : model::fail(locked.error());
  if (!actuators) {
    journal_problem_ = actuators.error().message();
    return model::fail(actuators.error());
  }
  journal_problem_.reset();
  actuators_ = std::move(*actuators);
  for (const auto& warning : actuators_->journal().warnings()) os::log_warning("undo journal: {}", warning);
  if (actuators_->journal().size() > 0) {
    os::log_warning("an earlier berthd ended without restoring everything: {} attributes to restore",
                    actuators_->journal().size());
    publish(entries_of(actuators_->writer().restore_all(kRestoreBudget), clock_.now(), mode_name(),
                       "left behind by an earlier berthd"));
  }
  publish(put_back_leaves("left behind by an earlier berthd"));
  return {};
}

model::Result<void> Daemon::begin_enforcing() {
  if (!actuators_) {
    if (auto opened = open_actuators(); !opened) {
      return model::fail(ErrorKind::unavailable, "there is no undo journal: " + opened.error().message());
    }
  }
  if (const auto problem = enforce_problem()) return model::fail(ErrorKind::unavailable, *problem);
  drop_documents();
  enforcer_.emplace(actuators_->writer(), [this](const std::string& id) { observer_->read_again(id); });
  enforcer_->take_over(actuators_->journal().records());
  shadow_ = {};
  admissions_->set_room({});  // what was only observed has made none
  return {};
}

std::optional<std::string> Daemon::enforce_problem() const {
  if (!actuators_) return "there is no undo journal: " + journal_problem_.value_or("not opened");
  if (hierarchy_.controllers.count("cpuset") == 0) {
    return fmt::format("{} has no cpuset controller, so nothing can be pinned", hierarchy_.root.string());
  }
  return std::nullopt;
}

cgroup::RestoreReport Daemon::end_enforcing(const std::string& reason, std::chrono::milliseconds budget) {
  const char* mode = mode_name();  // while it was done
  drop_documents();
  if (const auto abandoned = evictor_.abandon(clock_.now(), reason); !abandoned.empty()) publish(abandoned);
  eviction_timer_.arm(std::nullopt);
  enforcer_.reset();
  admissions_->set_room({});  // it is given back with all the rest
  if (!actuators_) return {};
  auto report = actuators_->writer().restore_all(budget);
  report.leaves = leaves_.put_back();
  if (leaves_.take_moved()) spark_.look_again();
  observer_->set_leaf_problems({});
  for (const auto& change : report.restored) observer_->read_again(change.workload);
  publish(entries_of(report, clock_.now(), mode, reason));
  return report;
}

// Restores what an earlier attempt left, for instance because systemd did not answer.
void Daemon::restore_the_rest() {
  if (enforcer_ || !actuators_ || actuators_->journal().size() == 0) return;
  auto report = actuators_->writer().restore_all(kRestoreBudget);
  // The first attempt has told what is left.
  std::erase_if(report.left, [](const auto& left) { return left.kept; });
  if (report.restored.empty() && report.gone.empty() && report.left.empty()) return;
  for (const auto& change : report.restored) observer_->read_again(change.workload);
  publish(entries_of(report, clock_.now(), mode_name(), "an earlier attempt failed"));
}

const Holdings& Daemon::holdings() const {
  static const Holdings kNone;
  return enforcer_ ? enforcer_->holdings() : kNone;
}

const UnmanagedWorkloads& Daemon::unmanaged() const {
  static const UnmanagedWorkloads kNone;
  return enforcer_ ? enforcer_->unmanaged() : kNone;
}

void Daemon::take_changes() {
  const auto changes = observer_->take_changes();
  for (const auto& warning : changes.warnings) os::log_warning("{}", warning);
  for (const auto& id : changes.vanished) {
    // A group that only ran out of processes is still the same run; another one may have the path by now.
    const auto living = cgroup::Cgroup::open(hierarchy_.root, id);
    overrides_->forget(id, living ? (*living)->id() : 0);
    os::log_debug("{} vanished", id);
  }
  for (const auto& id : changes.appeared) os::log_debug("{} appeared", id);
  admissions_->add_arrived(changes.appeared);
  if (!changes.vanished.empty() || !changes.appeared.empty()) drop_documents();
}

void Daemon::tick() {
  const double wall_before = os::monotonic_s();
  const double cpu_before = os::seconds_of(CLOCK_THREAD_CPUTIME_ID);
  woken_ = false;
  drop_documents();
  bus_.connect(*this, *observer_, clock_.now());
  metrics_.keep(settings_.metrics_listen, clock_.now());
  take_changes();
  if (actuators_) actuators_->greet_systemd();
  restore_the_rest();
  decision_log_->go_on();
  decide();
  if (leaves_.is_under_way() && !(enforcer_ && makes_leaves()))
    publish(put_back_leaves("systemd made it after berth had stopped making leaves"));
  ++ticks_;
  last_wall_ms_ = (os::monotonic_s() - wall_before) * 1000;
  total_cpu_ms_ += (os::seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu_before) * 1000;
  if (ticks_ > 1) notify_.status(status_line());  // the first goes out with READY=1
}

void Daemon::decide() {
  const double now = clock_.now();
  const UnmanagedWorkloads unmanaged_before = unmanaged();
  observer_->set_advertised(advertising_.advertised());
  observer_->set_used_shares(used_shares_->all());
  end_reservations(now);
  record(admissions_->meet(now));
  admissions_->set_pending(true);
  auto entries = enforcer_ ? decide_and_enforce(now) : decide_in_shadow(now);
  append(entries, advertise());
  learn_shares();
  if (plan_.findings.straggler) admissions_->set_room(plan_.findings.straggler->room);
  const auto news =
      stragglers_.take(plan_, [this](const std::string& id) { return observer_->cgroup_id(id); });
  pressure_.follow(observer_->snapshot(), observer_->found());
  count_workloads();
  announcer_.findings(plan_);
  Announcer::stragglers(news, mode_name());
  Announcer::unmanaged(unmanaged_before, unmanaged(), mode_name());
  publish(entries, news);
}

std::vector<LogEntry> Daemon::advertise() {
  auto entries = advertising_.take(plan_, mode_name());
  announcer_.attempt("state file", advertising_.write(plan_, mode_name()));
  return entries;
}

void Daemon::learn_shares() {
  if (!used_shares_->take(plan_)) return;
  announcer_.attempt("used shares", used_shares_->save_in_background());
}

// Reads the figures and the reservations that an earlier daemon left.
void Daemon::open_learned() {
  const auto say = [](const char* what, const std::optional<std::string>& warning) {
    if (warning) os::log_warning("{}: {}", what, *warning);
  };
  std::optional<std::string> warning;
  used_shares_.emplace(options_.state_dir, clock_, boot_id_, warning);
  say("cannot read the usage shares of the last day, so oversell starts without them", warning);
  warning.reset();
  admissions_.emplace(
      options_.runtime_dir, clock_, [this] { return node(); }, warning);
  say("cannot read all reservations, so some are lost", warning);
  warning.reset();
  if (!boot_id_.empty()) observer_->set_past(take_usage(options_.state_dir, boot_id_, clock_, warning));
  say("cannot read the samples that an earlier berthd saved, so berth starts without them", warning);
}

void Daemon::save_learned() {
  if (const auto saved = used_shares_->save(); !saved) os::log_warning("{}", saved.error().message());
  if (boot_id_.empty()) return;
  const auto saved = save_usage(options_.state_dir, boot_id_, clock_, observer_->snapshot(),
                                [this](const std::string& id) { return observer_->cgroup_id(id); });
  if (!saved) os::log_warning("{}", saved.error().message());
}

void Daemon::watch_pressure(sd_event* event, std::function<void()> rose) {
  pressure_.attach(event, [this, rose = std::move(rose)](const std::string& what) {
    os::log_debug("pressure on {}", what);
    if (!std::exchange(woken_, true)) ++woken_by_pressure_;
    rose();
  });
  pressure_.follow(observer_->snapshot(), observer_->found());  // of the ticks that were
}

void Daemon::watch_progress(sd_event* event) {
  progress_files_.attach(event, [this] {
    take_changes();  // what a run that has just begun says is not the one's before
    for (const auto& message : progress_files_.process(observer_->found(), observer_->progress(),
                                                       clock_.now(), clock_.wall_ahead_s())) {
      os::log_warning("{}", message);
    }
  });
}

void Daemon::serve_metrics(sd_event* event) {
  metrics_.attach(event);
  metrics_.keep(settings_.metrics_listen, clock_.now());
}

// The order matters: each step takes the host, the holdings or the snapshot as the step before left them.
const std::array<Daemon::Step, 10> Daemon::kEnforcing{{
    {"follow", &Daemon::follow_workloads},    // runs that ended hold nothing any more
    {"look", &Daemon::look},                  // reads the host
    {"check", &Daemon::check_foreign},        // finds values that another program changed
    {"advance", &Daemon::advance_under_way},  // takes evictions further
    {"assemble", &Daemon::assemble},          // makes the snapshot
    {"spare", &Daemon::let_go_of_spared},     // ends evictions of workloads that may not end any more
    {"decide", &Daemon::plan},                // makes the plan
    {"evict", &Daemon::carry_out_evictions},  // begins the plan's evictions
    {"apply", &Daemon::apply_plan},           // changes attributes as planned
    {"divide", &Daemon::divide_executors},    // moves executors into leaves
}};

std::vector<LogEntry> Daemon::decide_and_enforce(double now) {
  std::vector<LogEntry> entries;
  for (const Step& step : kEnforcing) {
    const double begun = os::monotonic_s();
    append(entries, (this->*step.run)(now));
    os::log_debug("step {}: {:.1f} ms", step.name, (os::monotonic_s() - begun) * 1000);
  }
  return entries;
}

// Whether workloads came, went or changed since the last call.
bool Daemon::workloads_changed() {
  const std::uint64_t before = std::exchange(followed_, observer_->generation());
  return before != followed_;
}

std::vector<LogEntry> Daemon::follow_workloads(double now) {
  if (!workloads_changed()) return {};
  return enforcer_->follow(observer_->found(), now);
}

std::vector<LogEntry> Daemon::check_foreign(double now) {
  return enforcer_->check(observer_->readings(), observer_->found(), settings_.foreign_writer, now);
}

std::vector<LogEntry> Daemon::advance_under_way(double now) {
  evictor_.forget_departed(observer_->found());
  auto entries = evictor_.advance(now);
  // Replacements of evicted executors must be known soon.
  if (!evictor_.marks().apps.empty()) spark_.look_again();
  return entries;
}

std::vector<LogEntry> Daemon::assemble(double) {
  observer_->assemble({.holdings = holdings(),
                       .unmanaged = unmanaged(),
                       .overrides = *overrides_,
                       .stragglers = stragglers_,
                       .refused = enforcer_->refused(),
                       .evictions = evictor_.marks()});
  return {};
}

std::vector<LogEntry> Daemon::plan(double now) {
  const auto& snapshot = observer_->snapshot();
  plan_ = {};  // the old plan and the new one need not be in memory at once
  plan_ = policies::decide(snapshot, settings_.policies);
  std::erase_if(plan_.actions, [this](const model::Action& action) { return enforcer_->refuses(action); });
  evictor_.look_at_memory(policies::is_memory_short(snapshot, plan_), now, settings_.policies.spark.hold_s);
  return {};
}

std::vector<LogEntry> Daemon::apply_plan(double) {
  const std::chrono::milliseconds budget(static_cast<int>(settings_.tick_s * kApplyShare * 1000));
  return enforcer_->apply(plan_, observer_->snapshot(), observer_->found(), budget);
}

std::vector<LogEntry> Daemon::divide_executors(double now) {
  const auto* seen = observer_->latest_spark();
  if (!makes_leaves() || seen == nullptr) return {};
  auto entries = leaves_.tick(
      {.seen = *seen, .found = observer_->found(), .snapshot = observer_->snapshot(), .holdings = holdings()},
      now);
  if (leaves_.take_moved()) spark_.look_again();
  observer_->set_leaf_problems(leaves_.problems());
  return entries;
}

std::vector<LogEntry> Daemon::put_back_leaves(const std::string& reason) {
  cgroup::RestoreReport report;
  report.leaves = leaves_.put_back();
  if (leaves_.take_moved()) spark_.look_again();
  observer_->set_leaf_problems({});
  return entries_of(report, clock_.now(), mode_name(), reason);
}

std::vector<LogEntry> Daemon::decide_in_shadow(double now) {
  if (workloads_changed()) shadow_.follow(*observer_);
  look(now);
  plan_ = {};
  const auto& snapshot = observer_->assemble({.holdings = shadow_.holdings(),
                                              .overrides = *overrides_,
                                              .stragglers = stragglers_,
                                              .evictions = shadow_.evictions()});
  plan_ = policies::decide(snapshot, settings_.policies);
  shadow_.look_at_memory(policies::is_memory_short(snapshot, plan_), now, settings_.policies.spark.hold_s);
  auto entries = shadow_.apply(plan_, *observer_);
  std::erase_if(entries, [](const LogEntry& entry) { return entry.kind == "advertise"; });  // see advertise()
  // The snapshot that is shown is of what really holds.
  admissions_->show_pending();
  observer_->assemble({.overrides = *overrides_, .stragglers = stragglers_});
  return entries;
}

std::vector<LogEntry> Daemon::look(double now) {
  const double cpu_before = os::seconds_of(CLOCK_THREAD_CPUTIME_ID);
  const double wall_ahead_s = clock_.wall_ahead_s();
  auto messages = observer_->read(now, wall_ahead_s);
  keep_to_budget(os::seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu_before);
  Announcer::gpus(observer_->take_gpu_news(), mode_name());
  observer_->set_spark(spark_.newest(messages));
  for (const auto& message : messages) os::log_warning("{}", message);
  for (const auto& message : progress_files_.follow(observer_->found(), observer_->generation(),
                                                    observer_->progress(), now, wall_ahead_s)) {
    os::log_warning("{}", message);
  }
  return {};
}

void Daemon::keep_to_budget(double read_cpu_s) {
  const auto cost = observer_->kernel().cost();
  budget_.add(read_cpu_s, cost ? static_cast<double>(cost->bpf_ns) * 1e-9 : 0, os::monotonic_s());
  announcer_.pace(budget_, settings_.tick_s, settings_.sampling_max_cpu);
}

void Daemon::count_workloads() {
  counts_ = {};
  for (const auto& workload : observer_->snapshot().workloads) {
    if (unmanaged().count(workload.id) > 0) {
      ++counts_.unmanaged;
    } else if (workload.workload_class == model::WorkloadClass::latency_sensitive) {
      ++counts_.latency_sensitive;
    } else {
      ++counts_.best_effort;
    }
  }
}

Admissions::Node Daemon::node() {
  return {.observer = *observer_,
          .settings = settings_.policies,
          .advertised = advertising_.advertised(),
          .mode = mode_name()};
}

void Daemon::end_reservations(double now) {
  const auto entries = admissions_->expire(now);
  if (!entries.empty()) drop_documents();
  record(entries);
}

void Daemon::leave_loop() {
  pressure_.detach();
  progress_files_.detach();
  eviction_timer_.detach();
  metrics_.detach();
  bus_.leave();
}

namespace {

// Entries are made with times of berthd's clock, and are read by people.
void to_wall_clock(std::vector<LogEntry>& entries, const os::Clock& clock) {
  const double ahead_s = clock.wall_ahead_s();
  for (LogEntry& entry : entries) entry.time += ahead_s;
}

}  // namespace

void Daemon::record(std::vector<LogEntry> entries) {
  to_wall_clock(entries, clock_);
  write_down(entries);
}

void Daemon::write_down(const std::vector<LogEntry>& entries) {
  for (const auto& entry : entries) announce(entry);
  const bool stored_before = !decision_log_->problem();
  decision_log_->append(entries);
  if (stored_before && decision_log_->problem()) os::log_warning("{}", *decision_log_->problem());
}

void Daemon::publish(std::vector<LogEntry> entries, const StragglerWatch::News& news) {
  to_wall_clock(entries, clock_);
  write_down(entries);
  bus_.tell(*this, *observer_, entries, news);
}

std::string Daemon::status_line() const {
  auto line = fmt::format("{}: {} latency-sensitive, {} best-effort workloads", mode_name(),
                          counts_.latency_sensitive, counts_.best_effort);
  if (counts_.unmanaged > 0) line += fmt::format(", {} left alone", counts_.unmanaged);
  if (const auto score = score_node()) line += fmt::format(", score {:.2f}", *score);
  if (config_error_) line += "; the last reload was rejected";
  return line;
}

void Daemon::stop() {
  notify_.stopping();
  advertising_.remove();
  if (actuators_) actuators_->be_patient();
  end_enforcing("berthd stops", std::chrono::milliseconds::max());
  save_learned();  // this waits for the disk
}

}  // namespace berth::daemon
