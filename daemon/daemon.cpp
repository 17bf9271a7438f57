// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include "daemon/ledger/action_entries.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/outbox.h"
#include "policies/decide.h"

#include <array>
#include <chrono>
#include <ctime>
#include <span>
#include <utility>

namespace berth::daemon {

namespace {

using model::ErrorKind;

// Settings of runs that ended meanwhile are dropped.
Overrides open_overrides(const Setup& setup) {
  std::optional<std::string> warning;
  Overrides overrides(setup.options.runtime_dir, warning);
  if (warning) os::log_warning("some settings made with berthctl set are lost: {}", *warning);
  overrides.keep_if([&root = setup.hierarchy.root](const std::string& id, std::uint64_t cgroup_id) {
    const auto living = cgroup::Cgroup::open(root, id);
    return living && (*living)->id() == cgroup_id;
  });
  return overrides;
}

Admissions open_admissions(const Setup& setup, Admissions::NodeNow node) {
  std::optional<std::string> warning;
  Admissions admissions(setup.options.runtime_dir, setup.clock, std::move(node), warning);
  if (warning) os::log_warning("cannot read all reservations, so some are lost: {}", *warning);
  return admissions;
}

}  // namespace

Daemon::Daemon(std::unique_ptr<Setup> setup, std::optional<cgroup::HostLock> host_lock,
               std::unique_ptr<Senses> senses)
    : setup_(std::move(setup)),
      senses_(std::move(senses)),
      enforcement_(*setup_, *senses_, std::move(host_lock),
                   [this](std::vector<LogEntry> entries) {
                     answers_.drop_documents();
                     departures_.take(entries, setup_->clock.wall_ahead_s());
                     messenger_.publish(std::move(entries));
                   }),
      overrides_(open_overrides(*setup_)),
      learned_(*setup_, senses_->observer()),
      admissions_(open_admissions(*setup_, [this] { return node(); })),
      advertising_(setup_->options.runtime_dir),
      metrics_([this] { return answers_.metrics_text(); }),
      answers_(*this, {.setup = *setup_,
                       .senses = *senses_,
                       .enforcement = enforcement_,
                       .overrides = overrides_,
                       .messenger = messenger_,
                       .admissions = admissions_,
                       .learned = learned_,
                       .standing = standing_,
                       .metrics = metrics_,
                       .plan = plan_,
                       .cost = cost_}),
      messenger_(*setup_, senses_->observer()) {}

Daemon::~Daemon() = default;

model::Result<std::unique_ptr<Daemon>> Daemon::start(const Options& options, config::Settings settings,
                                                     os::Clock clock) {
  auto setup = find_setup(options, std::move(settings), std::move(clock));
  if (!setup) return model::fail(setup.error());
  // First of all, as files of an earlier daemon are read once, and then removed. Where the lock cannot be had
  // for another reason than another berthd, Enforcement tries again.
  auto lock = cgroup::lock_host((*setup)->hierarchy.root, options.runtime_dir);
  if (!lock && lock.error().kind() == ErrorKind::refused) return model::fail(lock.error());
  auto senses = Senses::start(**setup);
  if (!senses) return model::fail(senses.error());
  std::unique_ptr<Daemon> daemon(new Daemon(
      std::move(*setup), lock ? std::optional(std::move(*lock)) : std::nullopt, std::move(*senses)));

  if (const auto opened = daemon->enforcement_.open(); !opened) {
    if (opened.error().kind() == ErrorKind::refused) return model::fail(opened.error());
    os::log_warning("undo journal: {}; staying in observe mode", opened.error().message());
  }
  for (const auto& capability : cgroup::capabilities(daemon->setup_->hierarchy)) {
    if (!capability.available) os::log_info("{}: {}", capability.name, capability.detail);
  }
  if (daemon->setup_->settings.mode == config::Mode::enforce && !options.observe) {
    if (const auto begun = daemon->begin_enforcing(); !begun) {
      daemon->mode_follows_ = true;
      os::log_error("cannot enforce: {}; staying in observe mode", begun.error().message());
    }
  }
  return daemon;
}

model::Result<void> Daemon::begin_enforcing() {
  auto begun = enforcement_.begin();
  if (!begun) return begun;
  answers_.drop_documents();
  model::forget_held(standing_);
  model::forget_evictions(standing_);
  admissions_.set_room({});  // observing alone has made none
  may_place_ = false;
  return {};
}

cgroup::RestoreReport Daemon::end_enforcing(const std::string& reason, std::chrono::milliseconds budget) {
  answers_.drop_documents();
  may_place_ = false;
  if (enforcement_.enforces()) model::forget_evictions(standing_);
  admissions_.set_room({});  // it is given back with all the rest
  return enforcement_.end(reason, budget);
}

cgroup::Discovery::Changes Daemon::note_changes() {
  auto changes = senses_->observer().take_changes();
  for (const auto& warning : changes.warnings) os::log_warning("{}", warning);
  for (const auto& id : changes.vanished) {
    // A group that only ran out of processes is still the same run; another one may have the path by now.
    const auto living = cgroup::Cgroup::open(setup_->hierarchy.root, id);
    overrides_.forget(id, living ? (*living)->id() : 0);
    os::log_debug("{} vanished", id);
  }
  for (const auto& id : changes.appeared) os::log_debug("{} appeared", id);
  for (const auto& id : changes.vanished) arrived_.erase(id);
  arrived_.insert(changes.appeared.begin(), changes.appeared.end());
  admissions_.add_arrived(changes.appeared);
  if (!changes.vanished.empty() || !changes.appeared.empty()) answers_.drop_documents();
  return changes;
}

void Daemon::take_changes() {
  const auto changes = note_changes();
  const auto& found = senses_->observer().found();
  for (const auto& id : changes.appeared) {
    const auto workload = found.find(id);
    if (workload == found.end()) continue;
    const bool by_user = workload->second.ground.user.has_value();
    if (arrivals_.add(by_user, setup_->clock.monotonic(), senses_->interval_s()) && appeared_)
      appeared_(Arrivals::kGather_s);
  }
}

void Daemon::tick() {
  measure(&Daemon::whole_tick, cost_.ticks);
  arrivals_.clear();
  arrived_.clear();
  may_place_ = true;
}

void Daemon::place() {
  if (!may_place_ || !arrivals_.is_due()) return;
  answers_.drop_documents();
  note_changes();  // a container may have got marks of the system meanwhile
  if (!arrived_.empty()) measure(&Daemon::placement, cost_.placements);
  arrivals_.clear();
  arrived_.clear();
}

void Daemon::measure(void (Daemon::*part)(), RunCost& cost) {
  const double wall_before = os::monotonic_s();
  const double cpu_before = os::seconds_of(CLOCK_THREAD_CPUTIME_ID);
  (this->*part)();
  ++cost.count;
  cost.last_wall_ms = (os::monotonic_s() - wall_before) * 1000;
  cost.total_cpu_ms += (os::seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu_before) * 1000;
  if (cost_.ticks.count + cost_.placements.count > 1)
    notify_.status(status_line());  // the first goes out with READY=1
}

void Daemon::whole_tick() {
  // Its caller cannot go on with it on a new connection, nor end it.
  if (trial_ && messenger_.bus().is_lost()) finish_trial("berthd lost its connection to the bus");
  senses_->begin_tick();
  answers_.drop_documents();
  messenger_.bus().connect(answers_, senses_->observer(), setup_->clock.now());
  metrics_.keep(setup_->settings.metrics_listen, setup_->clock.now());
  note_changes();
  expire_trial();
  enforcement_.begin_tick();
  messenger_.log().go_on();
  decide();
  enforcement_.end_tick();
}

void Daemon::placement() {
  const double now = setup_->clock.now();
  const LeftAloneWorkloads left_alone_before = enforcement_.left_alone();
  messenger_.record(admissions_.expire(now));
  messenger_.record(admissions_.meet(now));
  admissions_.set_pending(true);
  auto entries = take_steps(enforcement_.enforces() ? kEnforcingPlaces : kObservingPlaces, now);
  standing_ = policies::after_places(std::move(standing_), senses_->observer().snapshot(), plan_, outcomes_,
                                     arrived_);
  learned_.note_moves(entries, now);
  senses_->follow_pressure();
  answers_.count_workloads();
  Announcer::left_alone(left_alone_before, enforcement_.left_alone(), enforcement_.mode(),
                        [this](const std::string& id) { return messenger_.may_announce(id); });
  for (LogEntry& entry : entries) entry.time = now;  // not that of the figures
  messenger_.publish(std::move(entries));
}

void Daemon::decide() {
  const double now = setup_->clock.now();
  const LeftAloneWorkloads left_alone_before = enforcement_.left_alone();
  learned_.show();
  messenger_.record(admissions_.expire(now));
  messenger_.record(admissions_.meet(now));
  admissions_.set_pending(true);
  auto entries = take_steps(enforcement_.enforces() ? std::span<const Step>(kEnforcing) : kObserving, now);
  append(entries, advertising_entries(standing_.advertised, plan_, enforcement_.mode()));
  const auto may_announce = [this](const std::string& id) { return messenger_.may_announce(id); };
  announcer_.dropped(os::journal_outbox().dropped(), os::systemd_outbox().dropped());
  announcer_.attempt("used shares", learned_.take(plan_));
  announcer_.attempt("learned profiles", learned_.learn(may_announce, !trial_));
  if (plan_.findings.straggler) admissions_.set_room(plan_.findings.straggler->room);
  const auto& snapshot = senses_->observer().snapshot();
  const auto news = straggler_news(standing_, snapshot, plan_);
  standing_ = policies::after(std::move(standing_), snapshot, plan_, outcomes_, setup_->settings.policies);
  senses_->follow_pressure();
  answers_.count_workloads();
  announcer_.findings(plan_, may_announce);
  Announcer::stragglers(news, enforcement_.mode(), may_announce);
  Announcer::left_alone(left_alone_before, enforcement_.left_alone(), enforcement_.mode(), may_announce);
  departures_.take(entries, setup_->clock.wall_ahead_s());
  departures_.take(news.relocate, plan_, enforcement_.enforces());
  announcer_.attempt("state file", advertising_.write(plan_, standing_.advertised, departures_.newest_first(),
                                                      enforcement_.mode(), senses_->interval_s()));
  messenger_.publish(entries, news);
}

void Daemon::serve_metrics(sd_event* event) {
  metrics_.attach(event);
  metrics_.keep(setup_->settings.metrics_listen, setup_->clock.now());
}

// The order matters: each step takes the host, the holdings or the snapshot as the step before left them.
const std::array<Daemon::Step, 12> Daemon::kEnforcing{{
    // Runs that ended hold nothing any more.
    {"follow", [](Daemon& d, double now) { return d.enforcement_.follow(now); }},
    // Reads the host.
    {"look", [](Daemon& d, double now) { return d.look(now); }},
    // Finds values that another program changed.
    {"check", [](Daemon& d, double now) { return d.enforcement_.check(now); }},
    // Takes evictions further.
    {"advance", [](Daemon& d, double now) { return d.advance(now); }},
    // Makes the snapshot.
    {"assemble", [](Daemon& d, double) { return d.assemble(); }},
    // Adds up waits for berthctl blame.
    {"blame", [](Daemon& d, double) { return d.blame(); }},
    // Ends evictions of workloads that may not end any more, and gives back limits of those left alone.
    {"spare", [](Daemon& d, double now) { return d.enforcement_.let_go_of_spared(now); }},
    // Makes the plan.
    {"decide", [](Daemon& d, double) { return d.plan(); }},
    // Begins the plan's evictions.
    {"evict", [](Daemon& d, double now) { return d.enforcement_.evict(d.plan_, now, d.outcomes_); }},
    // Changes attributes as planned.
    {"apply", [](Daemon& d, double) { return d.enforcement_.apply(d.plan_); }},
    // Moves interrupts off the vCPUs that instances own.
    {"interrupts", [](Daemon& d, double now) { return d.enforcement_.move_interrupts(d.plan_, now); }},
    // Moves executors into leaves.
    {"divide", [](Daemon& d, double now) { return d.enforcement_.divide(now); }},
}};

const std::array<Daemon::Step, 6> Daemon::kObserving{{
    {"look", [](Daemon& d, double now) { return d.look(now); }},
    // Makes the snapshot with what earlier plans would hold.
    {"assemble", [](Daemon& d, double) { return d.assemble(); }},
    {"blame", [](Daemon& d, double) { return d.blame(); }},
    {"decide", [](Daemon& d, double) { return d.plan(); }},
    // Tells the changes that the plan would make.
    {"tell", [](Daemon& d, double) { return d.observed(); }},
    // Callers see the snapshot of what really holds.
    {"show", [](Daemon& d, double) { return d.show_untouched(); }},
}};

// Workloads that came since are placed among those that were read in the last tick.
const std::array<Daemon::Step, 5> Daemon::kEnforcingPlaces{{
    {"follow", [](Daemon& d, double now) { return d.enforcement_.follow(now); }},
    {"read new", [](Daemon& d, double) { return d.read_new(); }},
    {"assemble", [](Daemon& d, double) { return d.assemble(); }},
    {"place", [](Daemon& d, double now) { return d.plan_places(now); }},
    {"apply", [](Daemon& d, double) { return d.enforcement_.apply(d.plan_, Enforcer::Extent::pins); }},
}};

const std::array<Daemon::Step, 5> Daemon::kObservingPlaces{{
    {"read new", [](Daemon& d, double) { return d.read_new(); }},
    {"assemble", [](Daemon& d, double) { return d.assemble(); }},
    {"place", [](Daemon& d, double now) { return d.plan_places(now); }},
    {"tell", [](Daemon& d, double) { return d.observed(); }},
    {"show", [](Daemon& d, double) { return d.show_untouched(); }},
}};

std::vector<LogEntry> Daemon::take_steps(std::span<const Step> steps, double now) {
  std::vector<LogEntry> entries;
  for (const Step& step : steps) {
    const double begun = os::monotonic_s();
    append(entries, step.run(*this, now));
    os::log_debug("step {}: {:.1f} ms", step.name, (os::monotonic_s() - begun) * 1000);
  }
  return entries;
}

std::vector<LogEntry> Daemon::look(double now) {
  senses_->look(now);
  announcer_.pace(senses_->budget(), setup_->settings.tick_s, setup_->settings.sampling_max_cpu);
  Announcer::gpus(senses_->observer().take_gpu_news(), enforcement_.mode());
  return {};
}

std::vector<LogEntry> Daemon::assemble() {
  for (const double duration_s : enforcement_.take_eviction_durations())
    senses_->observer().add_eviction_duration(duration_s);
  senses_->observer().assemble(enforcement_.inputs(overrides_, standing_));
  return {};
}

std::vector<LogEntry> Daemon::blame() {
  senses_->follow_blame(setup_->clock.now());
  return {};
}

std::vector<LogEntry> Daemon::advance(double now) {
  auto entries = enforcement_.advance(now);
  // Replacements of evicted executors must be known soon.
  if (!standing_.spark_evicted.empty()) senses_->look_for_spark_again();
  return entries;
}

std::vector<LogEntry> Daemon::plan() {
  plan_ = {};  // the old plan and the new one need not be in memory at once
  take_plan(policies::decide(senses_->observer().snapshot(), setup_->settings.policies));
  return {};
}

std::vector<LogEntry> Daemon::read_new() {
  senses_->observer().read_new();
  return {};
}

std::vector<LogEntry> Daemon::plan_places(double now) {
  plan_ = {};
  take_plan(
      policies::decide_places(senses_->observer().snapshot(), setup_->settings.policies, arrived_, now));
  return {};
}

void Daemon::take_plan(model::Plan plan) {
  plan_ = std::move(plan);
  if (enforcement_.enforces()) enforcement_.drop_refused(plan_);
  // The evictions of a plan that is carried out are told as they begin.
  outcomes_ = enforcement_.enforces() ? policies::Outcomes() : policies::assumed(plan_);
}

std::vector<LogEntry> Daemon::observed() {
  const Observer& observer = senses_->observer();
  auto entries = observed_entries(plan_, observer.snapshot(), observer.readings(), standing_);
  // Advertising has entries of its own, in both modes.
  std::erase_if(entries, [](const LogEntry& entry) { return entry.kind == "advertise"; });
  return entries;
}

std::vector<LogEntry> Daemon::show_untouched() {
  admissions_.show_pending();
  senses_->observer().take_off();
  return {};
}

Admissions::Node Daemon::node() {
  return {.observer = senses_->observer(),
          .settings = setup_->settings.policies,
          .advertised = standing_.advertised,
          .mode = enforcement_.mode()};
}

void Daemon::leave_loop() {
  senses_->detach();
  enforcement_.detach();
  appeared_ = nullptr;
  metrics_.detach();
  messenger_.bus().leave();
}

void Daemon::stop() {
  notify_.stopping();
  trial_.reset();  // everything is put back anyway
  advertising_.remove();
  enforcement_.be_patient();
  end_enforcing("berthd stops", std::chrono::milliseconds::max());
  learned_.save();  // this waits for the disk
}

}  // namespace berth::daemon
