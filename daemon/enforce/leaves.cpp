// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforce/leaves.h"

#include "cgroup/writer.h"
#include "daemon/ledger/enforcer_log.h"
#include "model/path.h"
#include "os/ancestors.h"
#include "os/proc_files.h"
#include "spark/family.h"
#include "spark/process.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/core.h>
#include <poll.h>

namespace berth::daemon {

namespace {

using model::ErrorKind;

// systemd queues the job.
constexpr double kScopePatience_s = 10;
constexpr double kLeafRetry_s = 60;
// Until systemd has collected a scope that was emptied.
constexpr double kCollected_s = 2;
// How often the settings of a workload with leaves are looked at.
constexpr double kBounds_s = 10;
// For all executors of a workload together: the default weight of a cgroup.
constexpr int kWeight = 100;
// Number of passes for processes that fork while their family is moved.
constexpr int kPasses = 3;
// put_back() waits for a scope that is being made: so many times, so long.
constexpr int kWaits = 50;
constexpr int kWait_ms = 10;

// Whether its executors are to be evicted one by one.
bool is_to_be_divided(const model::Workload& workload) {
  return workload.workload_class == model::WorkloadClass::best_effort && !workload.fixed.life;
}

// The workload whose cgroup this is, or lies in; nullptr where none.
const cgroup::FoundWorkload* workload_around(const std::map<std::string, cgroup::FoundWorkload>& found,
                                             const std::string& path) {
  return os::find_around(path, [&](const std::string& id) {
    const auto at = found.find(id);
    return at == found.end() ? nullptr : &at->second;
  });
}

// The id of the workload's cgroup; 0 where there is no such workload.
std::uint64_t run_of(const std::map<std::string, cgroup::FoundWorkload>& found, const std::string& id) {
  const auto at = found.find(id);
  return at == found.end() ? 0 : at->second.cgroup->id();
}

bool is_container(cgroup::Kind kind) {
  return kind == cgroup::Kind::podman || kind == cgroup::Kind::docker || kind == cgroup::Kind::cri;
}

}  // namespace

std::vector<LogEntry> Leaves::tick(const Scene& scene, double now) {
  std::vector<LogEntry> entries;
  problems_.clear();
  asked_ = false;
  forget_gone(scene, now, entries);
  if (pending_) go_on(now, entries);
  end_with_former_runs(scene, now, entries);
  look_for_bounds(scene);
  give_up(scene, now, entries);
  make_next(scene, now, entries);
  return entries;
}

// A leaf that is no workload any more has ended, or its origin is none of berth's business now. Only berth
// removes the directory.
void Leaves::forget_gone(const Scene& scene, double now, std::vector<LogEntry>& entries) {
  std::set<std::uint64_t> origins;
  for (const auto& [id, target] : scene.found) {
    origins.insert(target.cgroup->id());
    if (target.leaf_of.empty()) continue;
    Known& known = known_[id];
    if (known.found) continue;
    const std::uint64_t run = known.run != 0 ? known.run : run_of(scene.found, target.leaf_of);
    known = {.origin = target.leaf_of, .run = run, .found = true, .back = {}};
  }
  for (auto item = known_.begin(); item != known_.end();) {
    auto& [leaf, known] = *item;
    const bool stays =
        scene.found.contains(leaf) || options_.monotonic() < known.back.again_at ||
        bring_back(leaf, known, fmt::format("{} is no workload any more", known.origin), now, entries);
    item = stays ? std::next(item) : known_.erase(item);
  }
  std::erase_if(refused_, [&](const auto& item) { return !origins.contains(item.first); });
  std::erase_if(bounds_, [&](const auto& item) { return !origins.contains(item.first); });
  std::set<ProcessId> alive;
  for (const auto& member : scene.seen.members) alive.insert({member.pid, member.started});
  std::erase_if(tried_, [&](const auto& item) { return !alive.contains(item.first); });
}

bool Leaves::bring_back(const std::string& leaf, Known& known, const std::string& reason, double now,
                        std::vector<LogEntry>& entries) {
  const auto back = cgroup::put_back_leaf(options_.cgroup_root, leaf, options_.hands);
  if (!back) return false;
  moved_ |= back->processes > 0;
  // A problem that repeats every minute is logged once.
  const bool news = back->processes > 0 || back->problem.value_or("") != known.back.problem;
  known.back = {options_.monotonic() + kLeafRetry_s, back->problem.value_or("")};
  if (news) {
    cgroup::RestoreReport report;
    report.leaves = {*back};
    for (LogEntry& entry : entries_of(report, now, kEnforce, reason)) entries.push_back(std::move(entry));
  }
  return back->problem.has_value();
}

LogEntry Leaves::entry_of(const Wanted& wanted, double now) const {
  LogEntry entry;
  entry.time = now;
  entry.mode = kEnforce;
  entry.kind = "leaf";
  entry.workload = wanted.leaf;
  entry.attribute = "cgroup.procs";
  entry.old_value = wanted.origin;
  entry.new_value = wanted.leaf;
  entry.policy = "eviction";
  entry.reason = fmt::format("for {}, so that it can be evicted alone: {}", wanted.executor, wanted.reason);
  entry.result = "applied";
  return entry;
}

void Leaves::say(const Wanted& wanted, const std::string& problem) {
  problems_.try_emplace(wanted.origin,
                        fmt::format("{} gets no cgroup of its own: {}", wanted.executor, problem));
}

void Leaves::fail(const Wanted& wanted, Tried& tried, const std::string& problem, double now,
                  std::vector<LogEntry>& entries) {
  // A problem that repeats every minute is logged once.
  const bool said = tried.problem == problem;
  tried = {options_.monotonic() + kLeafRetry_s, problem};
  say(wanted, problem);
  if (said) return;
  LogEntry entry = entry_of(wanted, now);
  entry.workload = wanted.origin;
  entry.result = "failed";
  entry.error = problem;
  entries.push_back(std::move(entry));
}

// If systemd does not answer, no further question follows for a while.
void Leaves::pause_after(const model::Error& error) {
  if (error.kind() == ErrorKind::transient || error.kind() == ErrorKind::unavailable)
    paused_until_ = options_.monotonic() + kLeafRetry_s;
}

// Continues with the scope that systemd was asked for some ticks ago.
void Leaves::go_on(double now, std::vector<LogEntry>& entries) {
  const Wanted wanted = pending_->wanted;
  const auto [pid, started] = wanted.process;
  const auto spot = options_.hands.look(pid);
  const bool lives = spot && spot->started == started;
  if (spot && spot->path == wanted.leaf) {
    pending_.reset();
    if (!lives) {
      // The executor has ended, and its pid, which systemd was given, now belongs to another process.
      const auto leaf = cgroup::Cgroup::open(options_.cgroup_root, wanted.leaf);
      if (leaf) cgroup::send_home(options_.cgroup_root, **leaf, pid, options_.hands);
      return;
    }
    const auto done = finish(wanted);
    if (!done) return fail(wanted, tried_[wanted.process], done.error().message(), now, entries);
    entries.push_back(entry_of(wanted, now));
    return;
  }
  if (options_.monotonic() < pending_->until) return;
  pending_.reset();
  if (!lives) return;
  fail(wanted, tried_[wanted.process],
       fmt::format("systemd has not made {} within {:.0f} s", model::last_component(wanted.leaf),
                   kScopePatience_s),
       now, entries);
}

model::Result<void> Leaves::finish(const Wanted& wanted) {
  remember(wanted);
  const auto leaf = cgroup::Cgroup::open(options_.cgroup_root, wanted.leaf);
  const auto origin = cgroup::Cgroup::open(options_.cgroup_root, wanted.origin);
  if (!leaf || !origin) return {};  // no process is left behind there
  const auto followed = move_family(**origin, **leaf, wanted.process);
  if (followed) return {};
  (void)cgroup::put_back_leaf(options_.cgroup_root, wanted.leaf, options_.hands);
  return model::fail(followed.error());
}

void Leaves::remember(const Wanted& wanted) {
  moved_ = true;
  tried_.erase(wanted.process);
  known_[wanted.leaf] = {.origin = wanted.origin,
                         .run = wanted.run,
                         .found = false,
                         .back = {options_.monotonic() + kLeafRetry_s, {}}};
}

// A unit that restarts ends the processes of its former run. systemd before 253 does not pass a restart on to
// a scope that is stopped with the unit.
void Leaves::end_with_former_runs(const Scene& scene, double now, std::vector<LogEntry>& entries) {
  cgroup::ScopeMaker* scopes = options_.scopes();
  if (scopes == nullptr || is_paused()) return;
  for (auto& [leaf, known] : known_) {
    const std::uint64_t run = run_of(scene.found, known.origin);
    if (!cgroup::is_scope(leaf) || known.run == 0 || run == 0 || run == known.run) continue;
    if (!known.found || options_.monotonic() < known.back.again_at) continue;
    asked_ = true;
    const auto stopped = scopes->stop_unit(std::string(model::last_component(leaf)),
                                           [] { return true; });  // a scope never restarts
    known.back.again_at = options_.monotonic() + kLeafRetry_s;
    if (!stopped) pause_after(stopped.error());
    LogEntry entry;
    entry.time = now;
    entry.mode = kEnforce;
    entry.kind = "leaf";
    entry.workload = leaf;
    entry.new_value = "StopUnit";
    entry.policy = "eviction";
    entry.reason = fmt::format("{} has restarted, and this executor belongs to its former run", known.origin);
    entry.result = stopped ? "applied" : "failed";
    if (!stopped) entry.error = stopped.error().message();
    entries.push_back(std::move(entry));
    return;  // one a tick
  }
}

// A limit may be set after the leaves were made. Looks at one workload a tick.
void Leaves::look_for_bounds(const Scene& scene) {
  if (asked_ || is_paused()) return;
  for (const auto& [leaf, known] : known_) {
    const auto at = scene.found.find(known.origin);
    if (at == scene.found.end()) continue;
    const std::uint64_t run = at->second.cgroup->id();
    if (options_.monotonic() < bounds_[run].look_again_at || obstacle(at->second)) continue;
    asked_ = options_.systemd_runs;
    const auto traits = ask_traits(at->second, scene.holdings);
    // Its executors stay there once they are back.
    if (traits && traits->bound) refused_[run] = {options_.monotonic() + kLeafRetry_s, *traits->bound};
    return;
  }
}

// Puts back one leaf a tick, of workloads that are not to be divided any more, or that have a limit which
// the leaf escapes. An executor that is being evicted is left alone.
void Leaves::give_up(const Scene& scene, double now, std::vector<LogEntry>& entries) {
  for (const auto& [id, target] : scene.found) {
    if (target.leaf_of.empty()) continue;
    const auto* origin = find_workload(scene.snapshot, target.leaf_of);
    const auto* leaf = find_workload(scene.snapshot, id);
    if (origin == nullptr || (leaf != nullptr && leaf->evicted_at)) continue;
    const auto bound = bounds_.find(run_of(scene.found, target.leaf_of));
    const bool escapes = bound != bounds_.end() && bound->second.words;
    if (is_to_be_divided(*origin) && !escapes) continue;
    Known& known = known_.at(id);
    if (options_.monotonic() < known.back.again_at) continue;
    const std::string reason =
        escapes ? *bound->second.words : fmt::format("{} is not to be evicted any more", target.leaf_of);
    if (!bring_back(id, known, reason, now, entries)) return;
  }
}

// Why no executor of the workload can have a leaf; nullopt where it can.
std::optional<std::string> Leaves::obstacle(const cgroup::FoundWorkload& target) const {
  const std::string& id = target.identity.id;
  if (is_container(target.kind))
    return "it runs in a container, and the container runtime manages its cgroup";
  if (!cgroup::is_trusted_ground(options_.cgroup_root, id))
    return "users other than root may change its cgroup";
  if (!options_.systemd_runs && target.systemd_unit.empty()) return std::nullopt;
  if (target.systemd_unit.empty())
    return "systemd manages these cgroups, and the workload is in none of its units";
  if (!options_.systemd_runs) return "it belongs to a systemd unit, and berth cannot see that systemd";
  if (options_.scopes() == nullptr) return "systemd manages these cgroups, and berth cannot reach it";
  if (is_paused()) return "systemd did not answer the last request";
  return std::nullopt;
}

// Reads the settings that an executor would leave behind, in words, and the main process of its unit.
model::Result<cgroup::UnitTraits> Leaves::traits_of(const cgroup::FoundWorkload& target,
                                                    const Holdings& holdings) {
  std::map<model::Attribute, cgroup::Value> originals;
  std::set<model::Attribute> held;
  for (const auto attribute : model::kAttributes) {
    const Held* value = find_held(holdings.of(attribute), target.identity.id);
    if (value == nullptr || value->cgroup_id != target.cgroup->id()) continue;
    originals.emplace(attribute, value->original);
    held.insert(attribute);
  }
  cgroup::UnitTraits traits;
  traits.bound = cgroup::bounds_of(*target.cgroup, originals, options_.cgroup_root, !options_.systemd_runs);
  if (traits.bound) traits.bound = "the executor would escape a limit: " + *traits.bound;
  if (traits.bound || !options_.systemd_runs) return traits;
  auto told = options_.scopes()->traits(target.systemd_unit, held);
  if (told && told->bound) told->bound = "the executor would escape a setting: " + *told->bound;
  return told;
}

model::Result<cgroup::UnitTraits> Leaves::ask_traits(const cgroup::FoundWorkload& target,
                                                     const Holdings& holdings) {
  auto traits = traits_of(target, holdings);
  if (!traits) pause_after(traits.error());
  Bound& bound = bounds_[target.cgroup->id()];
  bound.look_again_at = options_.monotonic() + kBounds_s;
  if (traits) bound.words = traits->bound;
  return traits;
}

// Why the workload cannot lose the executor.
std::optional<std::string> Leaves::indispensable(const cgroup::FoundWorkload& target, const Wanted& wanted,
                                                 pid_t main_pid) const {
  const auto pids = cgroup::pids_in(*target.cgroup);
  std::set<pid_t> others(pids.begin(), pids.end());
  for (const auto& relative : spark::family_of(options_.proc_root, wanted.process.first, pids)) {
    if (relative.pid == main_pid) return "the main process of its unit would move with it";
    others.erase(relative.pid);
  }
  if (others.empty()) return "no other process is left in its cgroup";
  return std::nullopt;
}

void Leaves::make_next(const Scene& scene, double now, std::vector<LogEntry>& entries) {
  bool begun = pending_.has_value() || asked_;
  std::map<std::string, int> executors;  // by the workload that they are, or were, in
  for (const auto& member : scene.seen.members) {
    const auto leaf = known_.find(member.cgroup);
    if (member.kind == spark::ProcessKind::executor)
      ++executors[leaf == known_.end() ? member.cgroup : leaf->second.origin];
  }
  for (const auto& member : scene.seen.members) {
    if (member.kind != spark::ProcessKind::executor) continue;
    const auto* target = workload_around(scene.found, member.cgroup);
    if (target == nullptr || !target->leaf_of.empty()) continue;
    const std::string& id = target->identity.id;
    const auto* workload = find_workload(scene.snapshot, id);
    if (workload == nullptr || !workload->spared || workload->evicted_at || !is_to_be_divided(*workload))
      continue;
    const std::uint64_t run = target->cgroup->id();
    const cgroup::Leaf leaf{.origin = id, .pid = member.pid, .started = member.started};
    const Wanted wanted{.process = {member.pid, member.started},
                        .executor = spark::text_of(member),
                        .origin = id,
                        .run = run,
                        .leaf = cgroup::leaf_path(leaf, options_.systemd_runs),
                        .reason = *workload->spared,
                        .weight = std::max(1, kWeight / std::max(1, executors[id]))};
    if (member.cgroup != id) {
      say(wanted, fmt::format("it runs in a deeper cgroup, \"{}\"", member.cgroup));
      continue;
    }
    if (const auto why = obstacle(*target)) {
      say(wanted, *why);
      continue;
    }
    const auto waits = [&](const Tried& tried) {
      if (!tried.problem.empty()) say(wanted, tried.problem);
      return options_.monotonic() < tried.again_at;
    };
    if (const auto of_all = refused_.find(run); of_all != refused_.end() && waits(of_all->second)) continue;
    if (const auto own = tried_.find(wanted.process); own != tried_.end() && waits(own->second)) continue;
    if (begun) continue;
    // The observation can be seconds old, and the executor may have its leaf already.
    const auto user = os::user_of(options_.proc_root / std::to_string(member.pid)).value_or(0);
    const auto looked = looks_.run(
        id, user, [root = options_.proc_root, pid = member.pid] { return spark::find_process(root, pid); });
    if (!looked) {
      say(wanted, "its command line cannot be read just now");
      continue;
    }
    const auto& process = *looked;
    if (!process || process->started != member.started || process->cgroup != id ||
        process->what.kind != spark::ProcessKind::executor)
      continue;
    const auto leaves =
        std::ranges::count_if(known_, [&](const auto& item) { return item.second.origin == id; });
    if (static_cast<std::size_t>(leaves) >= kMost) {
      say(wanted, fmt::format("{} executors of this workload have one already", leaves));
      continue;
    }
    begun = true;
    make(scene, *target, wanted, now, entries);
  }
}

void Leaves::make(const Scene& scene, const cgroup::FoundWorkload& target, const Wanted& wanted, double now,
                  std::vector<LogEntry>& entries) {
  const auto traits = ask_traits(target, scene.holdings);
  if (!traits || traits->bound) {
    const std::string why = traits ? *traits->bound : traits.error().message();
    return fail(wanted, refused_[wanted.run], why, now, entries);
  }
  refused_.erase(wanted.run);
  if (const auto why = indispensable(target, wanted, traits->main_pid))
    return fail(wanted, tried_[wanted.process], *why, now, entries);
  const auto made =
      options_.systemd_runs ? make_scope(target, wanted, *traits) : make_directory(target, wanted);
  if (!made && made.error().kind() == ErrorKind::refused && !tried_.contains(wanted.process)) {
    // A scope of that name has just been emptied, as at a restart of berthd, and systemd has not collected it
    // yet.
    tried_[wanted.process] = {options_.monotonic() + kCollected_s, {}};
    return;
  }
  if (!made) {
    pause_after(made.error());
    return fail(wanted, tried_[wanted.process], made.error().message(), now, entries);
  }
  if (!pending_) entries.push_back(entry_of(wanted, now));
}

model::Result<void> Leaves::make_directory(const cgroup::FoundWorkload& target, const Wanted& wanted) {
  const auto directory = options_.cgroup_root / wanted.leaf;
  if (auto made = options_.hands.make(directory); !made) return made;
  const auto undo = [&](const model::Error& error) {
    (void)cgroup::put_back_leaf(options_.cgroup_root, wanted.leaf, options_.hands);
    return model::fail(error);
  };
  const auto leaf = cgroup::Cgroup::open(options_.cgroup_root, wanted.leaf);
  if (!leaf) return undo(leaf.error());
  // Only where the slice uses weights at all.
  for (const char* file : {"cpu.weight", "io.weight"}) {
    if ((*leaf)->has(file)) (void)(*leaf)->write(file, std::to_string(wanted.weight));
  }
  const auto moved = move_family(*target.cgroup, **leaf, wanted.process);
  if (!moved) return undo(moved.error());
  if (*moved == 0) return undo({ErrorKind::gone, "it has just ended"});
  remember(wanted);
  return {};
}

// systemd is given one pid. The rest of the family follows once that process is there.
model::Result<void> Leaves::make_scope(const cgroup::FoundWorkload& target, const Wanted& wanted,
                                       const cgroup::UnitTraits& traits) {
  const auto spot = options_.hands.look(wanted.process.first);
  if (!spot || spot->started != wanted.process.second)
    return model::fail(ErrorKind::gone, "it has just ended");
  const std::string slice(model::last_component(model::parent_path(wanted.origin)));
  // Only where the slice uses weights at all: else systemd would turn them on for the whole slice.
  const auto weight = [&](const char* file) {
    return target.cgroup->has(file) ? std::optional(wanted.weight) : std::nullopt;
  };
  auto started = options_.scopes()->start_scope(
      {.unit = std::string(model::last_component(wanted.leaf)),
       .description = fmt::format("{}, apart from {}", wanted.executor, target.systemd_unit),
       .slice = slice.empty() ? "-.slice" : slice,
       .stopped_with = target.systemd_unit,
       .pid = wanted.process.first,
       .cpu_weight = weight("cpu.weight"),
       .io_weight = weight("io.weight"),
       .tasks_max = traits.tasks_max,
       .timeout_stop_us = traits.timeout_stop_us});
  // Without an answer, systemd may still do it.
  if (!started && started.error().kind() != ErrorKind::transient) return started;
  if (!started) pause_after(started.error());
  pending_ = Pending{wanted, options_.monotonic() + kScopePatience_s};
  return {};
}

model::Result<std::size_t> Leaves::move_family(const cgroup::Cgroup& origin, const cgroup::Cgroup& leaf,
                                               ProcessId process) {
  std::size_t moved = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    auto others = cgroup::pids_in(origin);
    const std::set<pid_t> here(others.begin(), others.end());
    // Processes that were moved before are parents of some that were not.
    const auto there = cgroup::pids_in(leaf);
    others.insert(others.end(), there.begin(), there.end());
    const auto family = spark::family_of(options_.proc_root, process.first, others);
    if (family.empty() || family.front().started != process.second) break;  // it has ended
    bool any = false;
    for (const spark::Relative& relative : family) {
      if (!here.contains(relative.pid)) continue;
      any = true;
      const auto done = cgroup::move_process(options_.cgroup_root, origin, leaf, relative.pid,
                                             relative.started, options_.hands);
      if (!done) return model::fail(done.error());
      moved += *done ? 1 : 0;
    }
    if (!any) break;
  }
  return moved;
}

std::vector<cgroup::PutBack> Leaves::put_back() {
  if (pending_) {
    const auto [pid, started] = pending_->wanted.process;
    const auto is_to_come = [&, pid = pid, started = started] {
      const auto spot = options_.hands.look(pid);
      return spot && spot->started == started && spot->path != pending_->wanted.leaf;
    };
    for (int i = 0; !pending_->awaited && i < kWaits && is_to_come(); ++i) poll(nullptr, 0, kWait_ms);
    pending_->awaited = true;
    if (!is_to_come() || options_.monotonic() >= pending_->until) pending_.reset();
  }
  tried_.clear();
  refused_.clear();
  bounds_.clear();
  known_.clear();
  problems_.clear();
  auto done = cgroup::put_back_leaves(options_.cgroup_root, options_.hands);
  for (const auto& back : done) moved_ |= back.processes > 0;
  return done;
}

}  // namespace berth::daemon
