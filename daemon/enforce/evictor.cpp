// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforce/evictor.h"

#include "cgroup/leaf.h"
#include "daemon/enforce/executor_process.h"
#include "daemon/ledger/action_entries.h"
#include "daemon/ledger/enforcer_log.h"
#include "model/json.h"
#include "model/text.h"
#include "os/log.h"
#include "spark/shared_now.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace berth::daemon {

namespace {

using model::ErrorKind;
using model::EvictionStep;

// Longest delay until the end of a victim is noticed.
constexpr double kLook_s = 0.2;
// Pause before a failed step is tried again; kMostFailures limits the attempts.
constexpr double kRetry_s = 1;
constexpr std::uint32_t kMostFailures = 5;
// SIGKILL takes effect once its target leaves the kernel, which one that waits for a dead disk never does.
constexpr double kKillPatience_s = 60;
// Processes of a threaded group that still run so long after each of them was killed were forked since.
constexpr double kEscapes_s = 3;

std::string memory_in_use(const cgroup::Cgroup& cgroup) {
  const std::string text = cgroup.read("memory.current").value_or("");
  return std::string(model::trimmed_end(text, "\n"));
}

// Whether another user than root, or than the one that runs this program, may change the group: its
// attributes, and which processes are in it.
bool is_of_a_user(const cgroup::Cgroup& cgroup) {
  struct stat status {};
  if (fstat(cgroup.fd(), &status) != 0) return true;
  return status.st_uid != 0 && status.st_uid != geteuid();
}

}  // namespace

std::optional<std::string> Evictor::refusal(const cgroup::FoundWorkload& target,
                                            const model::Workload& workload) const {
  if (workload.workload_class != model::WorkloadClass::best_effort)
    return "it is latency-sensitive, and only best-effort workloads are evicted";
  if (workload.spared) return *workload.spared;
  if (is_never_evicted(workload.id, target.ground))
    return "it is a slice with other units, or belongs to berth";
  const auto under_way = std::find_if(victims_.begin(), victims_.end(), [&target](const auto& item) {
    return item.second.cgroup->id() == target.cgroup->id();
  });
  if (under_way != victims_.end()) {
    return fmt::format("{} is being evicted already ({})", under_way->second.pod ? "its pod" : "it",
                       under_way->second.action.decision);
  }
  const auto processes = cgroup::Processes::of(*target.cgroup);
  if (!processes) return processes.error().message();
  if (processes->contains(getpid())) return "berthd itself runs in it";
  if (processes->contains(1)) return "process 1 of the host runs in it";
  return std::nullopt;
}

// The workload itself or, if it is a container of a pod, the same in the pod's cgroup. A group that a user
// made is no pod, whatever its name.
model::Result<cgroup::FoundWorkload> Evictor::whole_of(const cgroup::FoundWorkload& target,
                                                       const Found& found) {
  const auto pod = target.ground.user ? std::nullopt : cgroup::pod_of(target.identity.id);
  if (!pod) return target;
  const auto refused = [&](const std::string& why) {
    return model::fail(ErrorKind::refused, fmt::format("{} is not evicted: {}", target.identity.id, why));
  };
  if (pod->group.empty()) {
    return refused(
        "its pod would have to end as a whole, and the container runtime made no cgroup for it; set the "
        "runtime's cgroup driver to kubelet's (SystemdCgroup)");
  }
  for (const auto& [id, other] : found) {
    if (other.identity.workload_class != model::WorkloadClass::latency_sensitive) continue;
    if (const auto its = cgroup::pod_of(id); its && its->name == pod->name)
      return refused(fmt::format("its pod would end, and {} in it is latency-sensitive", id));
  }
  auto group = target.cgroup->above();
  if (!group) return model::fail(group.error());
  cgroup::FoundWorkload whole = target;
  whole.cgroup = std::move(*group);
  whole.systemd_unit.clear();  // kubelet, and not systemd, starts containers anew
  return whole;
}

void Evictor::mark(const Victim& victim, std::optional<double> evicted_at) {
  for (const auto& [id, cgroup_id] : victim.members)
    marks_.by_workload[id] = {.cgroup_id = cgroup_id, .evicted_at = evicted_at};
}

void Evictor::unmark(const Victim& victim) {
  for (const auto& [id, cgroup_id] : victim.members) marks_.by_workload.erase(id);
}

model::Result<std::vector<LogEntry>> Evictor::begin(const cgroup::FoundWorkload& victim_itself,
                                                    const model::Workload& workload,
                                                    const model::Action& action, double now,
                                                    const Found& found) {
  const std::string& id = workload.id;
  const auto* eviction = std::get_if<model::Evict>(&action.what);
  if (eviction == nullptr) return model::fail(ErrorKind::invalid_input, "not an eviction");
  const auto whole = whole_of(victim_itself, found);
  if (!whole) return model::fail(whole.error());
  const cgroup::FoundWorkload& target = *whole;
  const bool pod = target.cgroup != victim_itself.cgroup;
  if (const auto why = refusal(target, workload)) {
    return model::fail(ErrorKind::refused, fmt::format("{} is not evicted: {}", id, *why));
  }
  // Before the list of processes: then it is of one run, as long as the group was not empty.
  auto watch = cgroup::EmptyWatch::of(*target.cgroup);
  if (!watch) return model::fail(watch.error());
  auto processes = cgroup::Processes::of(*target.cgroup);
  if (!processes) return model::fail(processes.error());
  // A list of processes that fork faster than they are listed may be empty.
  if (!target.cgroup->is_current() ||
      (processes->empty() && !cgroup::is_populated(*target.cgroup).value_or(false))) {
    return model::fail(ErrorKind::gone, fmt::format("{} has no processes any more", id));
  }
  // The snapshot can be seconds old. The workload may be alone again soon, so the error is transient.
  const auto look = look_at(target, *processes);
  // What processes of others show of themselves, or hide, spares them from nothing.
  const bool believed = target.command_lines_count();
  if (!look && believed) {
    spare_for_a_while(victim_itself);
    return model::fail(ErrorKind::transient,
                       fmt::format("{} is not evicted now: its processes keep their command lines from being "
                                   "read; it is spared for {:.0f} s",
                                   id, kLooksAgain_s));
  }
  if (look && look->shared && believed)
    return model::fail(ErrorKind::transient, fmt::format("{} is not evicted now: {}", id, *look->shared));
  const double begun = options_.monotonic();
  Victim victim{.cgroup = target.cgroup,
                .unit = target.systemd_unit,
                .confined_at = target.confined_at,
                .executor = !pod && workload.spark && workload.spark->role == model::SparkRole::executor,
                .pod = pod,
                .members = {{id, victim_itself.cgroup->id()}},
                .action = action,
                .next = eviction->how,
                .grace_s = eviction->grace_s,
                .began_at = begun,
                .next_at = begun,
                .last = std::move(*processes),
                .moved = {},
                .watch = std::move(*watch),
                .invocation = cgroup::invocation_of(*target.cgroup),
                .of_a_user = target.ground.user.has_value() || is_of_a_user(*target.cgroup),
                .decommissionable = look ? look->decommissionable : std::nullopt};
  for (const auto& [other, known] : found) {
    if (pod && other != id && other.starts_with(target.cgroup->path() + "/"))
      victim.members.emplace_back(other, known.cgroup->id());
  }
  mark(victim, now);
  std::vector<LogEntry> entries;
  take(victim, now, entries);
  if (!victim.over) victims_.insert_or_assign(id, std::move(victim));
  return entries;
}

// Reads command lines on another thread; nullopt where that takes too long.
std::optional<Evictor::Look> Evictor::look_at(const cgroup::FoundWorkload& target,
                                              const cgroup::Processes& processes) {
  std::vector<pid_t> held;
  for (const cgroup::Process& process : processes.all()) held.push_back(process.pid);
  struct stat status {};
  const uid_t user = fstat(target.cgroup->fd(), &status) == 0 ? status.st_uid : 0;
  return looks_.run(
      target.identity.id, user,
      [root = options_.proc_root, id = target.identity.id, pids = cgroup::pids_below(*target.cgroup),
       held = std::move(held)] {
        Look look{.shared = spark::shared_now(root, id, pids), .decommissionable = std::nullopt};
        const auto executor = std::find_if(held.begin(), held.end(),
                                           [&](pid_t pid) { return can_be_decommissioned(root, pid); });
        if (executor != held.end()) look.decommissionable = *executor;
        return look;
      });
}

// The next eviction is of another workload.
void Evictor::spare_for_a_while(const cgroup::FoundWorkload& target) {
  spare(target);
  ended_[target.identity.id] = {.until = options_.monotonic() + kLooksAgain_s,
                                .spared_run = target.cgroup->id()};
}

std::vector<LogEntry> Evictor::advance(double now) {
  std::vector<LogEntry> entries;
  for (auto& [id, victim] : victims_) {
    if (has_ended(victim, now, entries) || options_.monotonic() < victim.next_at) continue;
    take(victim, now, entries);
  }
  std::erase_if(victims_, [](const auto& item) { return item.second.over; });
  return entries;
}

LogEntry Evictor::entry_of(const Victim& victim, double now, std::string step) const {
  LogEntry entry = daemon::entry_of(victim.action, now, kEnforce);
  entry.attribute = std::move(step);
  entry.old_value = memory_in_use(*victim.cgroup);
  entry.result = "applied";
  return entry;
}

// Whether the processes `now`, listed before this is asked, are those of the run that was to end, or were
// started by them. The owner of a group can write another InvocationID, and can freeze and thaw the group so
// that it may have been empty. So a user's group has one run for as long as it exists.
bool Evictor::is_same_run(const Victim& victim, const cgroup::Processes& now) {
  if (!victim.cgroup->is_current()) return false;
  if (victim.of_a_user) return true;
  if (cgroup::invocation_of(*victim.cgroup) != victim.invocation) return false;
  return !victim.watch.may_have_been_empty() || now.share_living(victim.last);
}

bool Evictor::is_same_run(const Victim& victim) {
  const auto now = cgroup::Processes::of(*victim.cgroup);
  return now && is_same_run(victim, *now);
}

// Whether the victim has ended or was replaced: then other processes run there.
bool Evictor::has_ended(Victim& victim, double now, std::vector<LogEntry>& entries) {
  const double took_s = options_.monotonic() - victim.began_at;
  const auto populated = cgroup::is_populated(*victim.cgroup);
  const bool gone = populated ? !*populated : populated.error().kind() == ErrorKind::gone;
  if (gone || !victim.cgroup->is_current()) {
    if (victim.unanswered) {  // systemd has done it since
      entries.push_back(*std::exchange(victim.unanswered, std::nullopt));
      ++counts_.terminate;
    }
    if (victim.of_a_user) {
      victim.moved.take_living(std::move(victim.last), {});
      kill_moved(victim, now, entries);
    }
    LogEntry entry = entry_of(victim, now, "end");
    entry.reason = fmt::format("ended {:.1f} s after its eviction began", took_s);
    end(victim, std::move(entry), entries);
    return true;
  }
  // If the processes cannot be listed just now, the last list stays.
  auto processes = cgroup::Processes::of(*victim.cgroup);
  if (!processes) return false;
  if (is_same_run(victim, *processes)) {
    if (processes->empty()) return false;
    if (victim.of_a_user) victim.moved.take_living(std::move(victim.last), *processes);
    victim.last = std::move(*processes);
    return false;
  }
  if (!processes->any_alive()) return false;  // the next look tells
  LogEntry entry = entry_of(victim, now, "end");
  entry.result = "left";
  entry.reason = fmt::format(
      "all processes that were to end have ended, {:.1f} s after the eviction began; new ones run there and "
      "are left alone",
      took_s);
  end(victim, std::move(entry), entries);
  return true;
}

// The owner of a group can move its processes to another one of its own, so that the victim seems to have
// ended. Root can move them anywhere, and those that are not within the user's groups any more are left.
void Evictor::kill_moved(Victim& victim, double now, std::vector<LogEntry>& entries) {
  victim.moved.keep_within(victim.confined_at, victim.cgroup->path(), options_.proc_root);
  if (victim.moved.empty()) return;
  LogEntry entry = entry_of(victim, now, "kill");
  entry.new_value = "SIGKILL";
  entry.reason = "its user moved processes out of it, and they end with it";
  if (const auto sent = victim.moved.signal(SIGKILL); !sent) {
    entry.result = "failed";
    entry.error = sent.error().message();
  }
  victim.moved = {};
  ++counts_.kill;
  entries.push_back(std::move(entry));
}

void Evictor::end(Victim& victim, LogEntry entry, std::vector<LogEntry>& entries) {
  marks_.ended_at = entry.time;
  durations_s_.push_back(options_.monotonic() - victim.began_at);
  if (entry.result == "left") {
    mark(victim, std::nullopt);
    ended_[entry.workload] = {.until = options_.monotonic() + kComesBack_s,
                              .spared_run = victim.members.front().second};
  } else {
    unmark(victim);
    if (victim.action.policy != kByHand)
      ended_[entry.workload] = {.until = options_.monotonic() + kComesBack_s};
    ++counts_.ended;
  }
  entries.push_back(std::move(entry));
  victim.over = true;
}

void Evictor::wait_for_next(Victim& victim, EvictionStep next) {
  victim.next = next;
  victim.failures = 0;
  victim.next_at = options_.monotonic() + victim.grace_s;
}

// Kubernetes ends a pod better than signals do: it heeds the pod's time to end, and its controller makes
// another one elsewhere. The log entry makes the eviction public (departures), and berth-kube asks the
// Eviction API.
void Evictor::ask_for_the_pod(Victim& victim, double now, std::vector<LogEntry>& entries) {
  victim.asked = true;
  LogEntry entry = entry_of(victim, now, "decommission");
  entry.new_value = "pod eviction";
  entries.push_back(std::move(entry));
  wait_for_next(victim, EvictionStep::terminate);
  ++counts_.decommission;
}

void Evictor::take(Victim& victim, double now, std::vector<LogEntry>& entries) {
  if (victim.pod && !victim.asked && victim.next != EvictionStep::kill)
    return ask_for_the_pod(victim, now, entries);
  switch (victim.next) {
    case EvictionStep::decommission:
      if (decommission(victim, now, entries)) return;
      return terminate(victim, now, entries);
    case EvictionStep::terminate:
      return terminate(victim, now, entries);
    case EvictionStep::kill:
      return kill(victim, now, entries);
  }
}

// Returns false where no process can be decommissioned, or it was done before.
bool Evictor::decommission(Victim& victim, double now, std::vector<LogEntry>& entries) {
  if (!victim.executor) return false;
  const auto& all = victim.last.all();
  const auto executor = std::find_if(all.begin(), all.end(), [&victim](const cgroup::Process& process) {
    return process.pid == victim.decommissionable;
  });
  if (executor == all.end()) return false;
  // The mark comes before the signal: a lost signal is better than two.
  if (fsetxattr(victim.cgroup->fd(), cgroup::kDecommissionedMark, "1", 1, XATTR_CREATE) != 0) return false;
  if (!cgroup::signal_process(*executor, SIGPWR)) return false;
  LogEntry entry = entry_of(victim, now, "decommission");
  entry.new_value = "SIGPWR";
  entries.push_back(std::move(entry));
  wait_for_next(victim, EvictionStep::terminate);
  ++counts_.decommission;
  return true;
}

void Evictor::terminate(Victim& victim, double now, std::vector<LogEntry>& entries) {
  LogEntry entry = entry_of(victim, now, "terminate");
  cgroup::UnitStopper* units = victim.unit.empty() ? nullptr : options_.units();
  if (units == nullptr && !victim.unit.empty() && options_.systemd_runs) {
    return give_up(victim, std::move(entry),
                   "berth cannot reach systemd to stop the unit, and systemd might start it again", entries);
  }
  if (units != nullptr) {
    entry.new_value = "StopUnit";
    const auto stopped = units->stop_unit(
        victim.unit, [&victim] { return victim.cgroup->is_current() && is_same_run(victim); });
    if (!stopped && stopped.error().kind() == ErrorKind::transient && ++victim.failures < kMostFailures) {
      victim.next = EvictionStep::terminate;
      victim.next_at = options_.monotonic() + kRetry_s;
      victim.unanswered = std::move(entry);
      return;
    }
    victim.unanswered.reset();
    if (!stopped && stopped.error().kind() != ErrorKind::gone) {
      // If it were killed now, systemd would start it again, or others would end with it.
      return give_up(victim, std::move(entry), stopped.error().message(), entries);
    }
    // If systemd has forgotten the unit, it does not start it again. If only the run is over, the signal goes
    // to processes of that run that are left.
    if (!stopped) entry.new_value.clear();
  }
  if (entry.new_value.empty()) {
    entry.new_value = "SIGTERM";
    if (const auto sent = victim.last.signal(SIGTERM);
        !sent) {  // a process that cannot be asked to end is killed
      entry.result = "failed";
      entry.error = sent.error().message();
    }
  }
  entries.push_back(std::move(entry));
  wait_for_next(victim, EvictionStep::kill);
  ++counts_.terminate;
}

// A user's threaded group ends process by process. If some escape that by forks, all of the user's group ends
// that holds the threaded one: cgroup.kill reaches whatever is forked.
std::shared_ptr<cgroup::Cgroup> Evictor::group_to_kill(const Victim& victim) const {
  const bool escaped = victim.killed_at && options_.monotonic() - *victim.killed_at > kEscapes_s;
  if (!victim.of_a_user || !escaped) return victim.cgroup;
  const auto domain = cgroup::domain_of(*victim.cgroup);
  return domain && *domain && is_of_a_user(**domain) ? *domain : victim.cgroup;
}

void Evictor::kill(Victim& victim, double now, std::vector<LogEntry>& entries) {
  LogEntry entry = entry_of(victim, now, "kill");
  entry.new_value = "cgroup.kill";
  const double monotonic = options_.monotonic();
  victim.next = EvictionStep::kill;
  victim.next_at = monotonic + kRetry_s;
  if (victim.killed_at && monotonic - *victim.killed_at > kKillPatience_s) {
    return give_up(victim, std::move(entry),
                   fmt::format("it still runs {:.0f} s after it was killed", kKillPatience_s), entries);
  }
  if (!is_same_run(victim)) return;  // the next look tells
  const auto group = group_to_kill(victim);
  if (const auto done = cgroup::kill_all(*group); !done) {
    if (done.error().kind() == ErrorKind::gone) return;  // the next look notices that
    if (++victim.failures < kMostFailures) return;
    return give_up(victim, std::move(entry), done.error().message(), entries);
  }
  victim.failures = 0;
  if (victim.killed_at) return;
  victim.killed_at = monotonic;
  ++counts_.kill;
  entries.push_back(std::move(entry));
}

// Gives the victim up; it is spared from then on.
void Evictor::give_up(Victim& victim, LogEntry entry, std::string error, std::vector<LogEntry>& entries) {
  entry.result = "failed";
  entry.error = std::move(error);
  mark(victim, std::nullopt);
  // What keeps a user's group from ending may be the user's own doing, and is no exemption.
  if (victim.of_a_user) {
    ended_[entry.workload] = {.until = options_.monotonic() + kComesBack_s,
                              .spared_run = victim.members.front().second};
  }
  entries.push_back(std::move(entry));
  victim.over = true;
}

std::optional<double> Evictor::due_s() const {
  if (victims_.empty()) return std::nullopt;
  double due = kLook_s;
  const double now = options_.monotonic();
  for (const auto& [id, victim] : victims_) due = std::min(due, std::max(0.0, victim.next_at - now));
  return due;
}

std::vector<LogEntry> Evictor::abandon(double now, const std::string& reason) {
  std::vector<LogEntry> entries;
  for (auto& [id, victim] : victims_) {
    LogEntry entry = entry_of(victim, now, model::to_string(victim.next));
    entry.result = "left";
    entry.reason = fmt::format("{}: it was asked to end, and berth does not take the next step", reason);
    entries.push_back(std::move(entry));
  }
  victims_.clear();
  ended_.clear();
  marks_ = {};
  return entries;
}

std::vector<LogEntry> Evictor::let_go(const std::string& id, double now, const std::string& reason) {
  const auto found = victims_.find(id);
  marks_.by_workload.erase(id);
  if (found == victims_.end()) return {};
  unmark(found->second);
  LogEntry entry = entry_of(found->second, now, model::to_string(found->second.next));
  entry.result = "left";
  entry.reason = fmt::format("{}: berth does not take the next step", reason);
  victims_.erase(found);
  return {std::move(entry)};
}

void Evictor::spare(const cgroup::FoundWorkload& target) {
  marks_.by_workload[target.identity.id] = {.cgroup_id = target.cgroup->id(), .evicted_at = std::nullopt};
}

void Evictor::spare_those_that_came_back(const std::map<std::string, cgroup::FoundWorkload>& found) {
  for (auto at = ended_.begin(); at != ended_.end();) {
    auto& [id, ended] = *at;
    const auto mark = marks_.by_workload.find(id);
    const bool spared = mark != marks_.by_workload.end() && !mark->second.evicted_at &&
                        mark->second.cgroup_id == ended.spared_run;
    const bool over = options_.monotonic() > ended.until;
    if (over || victims_.contains(id)) {
      if (over && spared) marks_.by_workload.erase(mark);
      at = ended_.erase(at);
      continue;
    }
    const auto again = found.find(id);
    if (!spared && again != found.end() && cgroup::is_populated(*again->second.cgroup).value_or(false)) {
      spare(again->second);
      ended.spared_run = again->second.cgroup->id();
      os::log_info("{} came back after its eviction, and is spared for up to {:.0f} s", id, kComesBack_s);
    }
    ++at;
  }
}

void Evictor::forget_departed(const std::map<std::string, cgroup::FoundWorkload>& found) {
  spare_those_that_came_back(found);
  std::erase_if(marks_.by_workload, [&](const auto& item) {
    const auto living = found.find(item.first);
    return victims_.count(item.first) == 0 &&
           (living == found.end() || living->second.cgroup->id() != item.second.cgroup_id);
  });
}

void Evictor::retry_failed() {
  std::erase_if(marks_.by_workload, [](const auto& item) { return !item.second.evicted_at; });
}

EvictionCounts Evictor::counts() const {
  EvictionCounts counts = counts_;
  counts.under_way = victims_.size();
  return counts;
}

}  // namespace berth::daemon
