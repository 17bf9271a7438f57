// SPDX-License-Identifier: Apache-2.0
#include "spark/collector.h"

#include "model/name.h"
#include "os/ancestors.h"
#include "os/proc_files.h"
#include "spark/endpoints.h"
#include "spark/shared_now.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

namespace berth::spark {

namespace {

constexpr std::size_t kNamed = 4;
constexpr std::size_t kMostProblemBytes = 400;
constexpr std::size_t kMostProblems = 20;

// By its command line; a driver's does not name its application.
Member member_of(const Process& process) {
  Member member{.pid = process.pid,
                .name = process.what.name,
                .cgroup = process.cgroup,
                .kind = process.what.kind,
                .identity = {},
                .started = process.started};
  if (process.what.kind == ProcessKind::executor)
    member.identity = {process.what.app, model::SparkRole::executor, process.what.executor};
  return member;
}

// In words that fit into a log. Much of it is what the driver said.
std::string problem_of(pid_t driver, const std::string& why) {
  return fmt::format("Spark driver, pid {}: {}", driver,
                     model::shortened(model::to_name(why), kMostProblemBytes));
}

std::string text_of_user(std::optional<uid_t> user) {
  return user ? fmt::format("user {}", *user) : "an unknown user";
}

// "a, b, c"; only the first few of many.
std::string list_of(std::vector<std::string> parts, std::size_t more) {
  if (parts.size() > kNamed) {
    more += parts.size() - kNamed;
    parts.resize(kNamed);
  }
  std::string list = model::joined(parts, ", ");
  return more > 0 ? fmt::format("{} and {} more", list, more) : list;
}

// Visits the entries of the workload's own cgroup and of all below it.
template <typename Take>
void each_within(const std::map<std::string, Bystanders>& bystanders, const std::string& workload,
                 Take take) {
  if (const auto own = bystanders.find(workload); own != bystanders.end()) take(own->second);
  const std::string below = workload + "/";
  for (auto at = bystanders.lower_bound(below); at != bystanders.end() && at->first.starts_with(below); ++at)
    take(at->second);
}

// Why killing the workload would hit more than one executor or driver; nullopt where it would not.
std::optional<std::string> more_than_one(const std::vector<const Member*>& members,
                                         const std::string& workload,
                                         const std::map<std::string, Bystanders>* bystanders) {
  std::vector<std::string> parts;
  parts.reserve(members.size());
  std::size_t more = 0;
  for (const Member* member : members) parts.push_back(text_of(*member));
  if (bystanders != nullptr) {
    each_within(*bystanders, workload, [&](const Bystanders& others) {
      parts.push_back(fmt::format("{} (pid {})", others.name, others.pid));
      more += others.count - 1;
    });
  }
  if (parts.size() + more > 1) return "its cgroup is shared by " + list_of(std::move(parts), more);
  const Member& only = *members.front();
  if (only.kind != ProcessKind::service) return std::nullopt;
  const bool of_others = only.name.find("'s ") != std::string::npos;
  return fmt::format("{}{} (pid {}) serves executors in other cgroups", of_others ? "" : "Spark's ",
                     only.name, only.pid);
}

using MembersByWorkload = std::map<std::string, std::vector<const Member*>>;

MembersByWorkload members_by_workload(const Observation& observation,
                                      const std::function<bool(const std::string& id)>& is_workload) {
  MembersByWorkload by_workload;
  for (const Member& member : observation.members) {
    const auto workload = os::find_around(member.cgroup, [&](const std::string& path) {
      return is_workload(path) ? std::optional(path) : std::nullopt;
    });
    if (workload) by_workload[*workload].push_back(&member);
  }
  return by_workload;
}

Occupancy occupancy_of(const std::vector<const Member*>& members, const std::string& workload,
                       const Observation& observation) {
  const Member& only = *members.front();
  Occupancy found;
  if (members.size() == 1 && !only.identity.app.empty()) found.identity = only.identity;
  found.spared = more_than_one(members, workload, observation.bystanders.get());
  if (!found.spared && !found.identity)
    found.spared = fmt::format("{} (pid {}) drives an unknown application", only.name, only.pid);
  return found;
}

}  // namespace

std::string text_of(const Member& member) {
  const model::SparkIdentity& is = member.identity;
  if (is.executor) return fmt::format("executor {} of {} (pid {})", *is.executor, is.app, member.pid);
  if (!is.app.empty()) return fmt::format("the driver of {} (pid {})", is.app, member.pid);
  return fmt::format("{} (pid {})", member.name, member.pid);
}

std::map<std::string, Occupancy> occupancies(const Observation& observation,
                                             const std::function<bool(const std::string& id)>& is_workload) {
  std::map<std::string, Occupancy> found;
  for (const auto& [workload, members] : members_by_workload(observation, is_workload))
    found.emplace(workload, occupancy_of(members, workload, observation));
  return found;
}

std::map<std::string, std::string> only_applications(
    const Observation& observation, const std::function<bool(const std::string& id)>& is_workload) {
  std::map<std::string, std::string> found;
  for (const auto& [workload, members] : members_by_workload(observation, is_workload)) {
    std::set<std::string> apps;  // "" for a driver that has not told
    for (const Member* member : members)
      if (member->kind != ProcessKind::service) apps.insert(member->identity.app);
    if (apps.size() == 1 && !apps.begin()->empty()) found.emplace(workload, *apps.begin());
  }
  return found;
}

// What was known of a process that cannot be read now still counts, as long as it runs.
void Collector::find() {
  auto found = finder_.find();
  unread_ = found.unread.size();
  failure_ = std::move(found.failure);
  for (Process& process : processes_) {
    if (found.unread.count(process.pid) == 0) continue;
    const auto stat = os::read_stat(proc_root_ / std::to_string(process.pid));
    if (stat && stat->started == process.started) found.processes.push_back(std::move(process));
  }
  std::sort(found.processes.begin(), found.processes.end(),
            [](const Process& a, const Process& b) { return a.pid < b.pid; });
  processes_ = std::move(found.processes);
}

void Collector::look(double now) {
  if (looked_at_ != 0 && now >= looked_at_ && now - looked_at_ < kLookAgain_s) return;
  looked_at_ = now;
  find();
  std::map<std::optional<uid_t>, std::size_t> count;
  too_many_.clear();
  std::erase_if(processes_, [&](const Process& process) {
    if (++count[process.user] <= kMostProcesses) return false;
    ++too_many_[process.user];
    return true;
  });
  bystanders_.reset();
  if (!processes_.empty()) {
    bystanders_ =
        std::make_shared<const std::map<std::string, Bystanders>>(find_bystanders(proc_root_, processes_));
  }
  std::set<std::string> named;
  for (const Process& process : processes_)
    if (!process.what.driver.empty()) named.insert(process.what.driver);
  listening_ = listening_among(proc_root_, named);
  std::set<ProcessId> alive;
  for (const Process& process : processes_) {
    if (process.what.kind != ProcessKind::driver) continue;
    alive.insert({process.pid, process.started});
    meet(process);
  }
  std::erase_if(drivers_, [&](const auto& item) { return alive.count(item.first) == 0; });
}

void Collector::meet(const Process& process) {
  const ProcessId id{process.pid, process.started};
  const auto known = drivers_.find(id);
  // Look again until it has an application: its web server starts after the process.
  if (known != drivers_.end() && !known->second.facts.app_id.empty()) return;
  const auto own = listening_endpoints(proc_root_, process.pid);
  DriverPlace place{.process = id,
                    .user = os::user_of(proc_root_ / std::to_string(process.pid)),
                    .endpoints = own ? *own : usual_endpoints(proc_root_, process.pid),
                    .guessed = false};
  place.guessed = !own && !place.endpoints.empty() && place.user;
  if (place.endpoints.size() > DriverPlace::kMostEndpoints)
    place.endpoints.resize(DriverPlace::kMostEndpoints);
  drivers_[id].place = std::move(place);
}

std::optional<std::string> shared_now(const std::filesystem::path& proc_root, const std::string& workload,
                                      const std::vector<pid_t>& pids) {
  std::vector<Process> processes;
  std::vector<Member> members;
  std::set<pid_t> known(pids.begin(), pids.end());
  for (const pid_t pid : pids) {
    const auto process = find_process(proc_root, pid);
    if (!process) continue;
    processes.push_back(*process);
    if (process->cgroup == workload || process->cgroup.starts_with(workload + "/"))
      members.push_back(member_of(*process));
  }
  if (members.empty()) return std::nullopt;
  // A child of a Spark process belongs to it, wherever that one runs.
  for (const pid_t pid : pids) {
    auto stat = os::read_stat(proc_root / std::to_string(pid));
    while (stat && known.size() < pids.size() + kMostAncestors && known.insert(stat->parent).second) {
      if (auto process = find_process(proc_root, stat->parent)) processes.push_back(*std::move(process));
      stat = os::read_stat(proc_root / std::to_string(stat->parent));
    }
  }
  std::vector<const Member*> here;
  here.reserve(members.size());
  for (const Member& member : members) here.push_back(&member);
  const auto bystanders = find_bystanders(proc_root, processes, pids);
  return more_than_one(here, workload, &bystanders);
}

Collector::Collector(std::filesystem::path proc_root, Ask ask)
    : proc_root_(std::move(proc_root)), ask_(std::move(ask)), finder_(proc_root_) {}

Observation Collector::collect(double now, double wall_ahead_s) {
  look(now);
  Question question{.now = now, .wall_ahead_s = wall_ahead_s, .drivers = {}};
  for (const auto& [id, known] : drivers_) question.drivers.push_back(known.place);
  auto answer = ask_(question);
  problem_.clear();
  goes_on_ = answer && answer->goes_on;
  if (!answer) {
    problem_ = fmt::format("berth-sparkd, which asks Spark's drivers: {}", answer.error().message());
    return observation(now);
  }
  for (DriverFacts& facts : answer->drivers) {
    const auto known = drivers_.find(facts.process);
    if (known == drivers_.end()) continue;
    facts.read_at = std::min(facts.read_at, now);
    known->second.facts = std::move(facts);
  }
  return observation(now);
}

Observation Collector::processes(double now) {
  look(now);
  return observation(now);
}

Claims Collector::claims(double now) const {
  std::vector<Claim> claims;
  for (const auto& [id, known] : drivers_) {
    if (known.facts.app_id.empty()) continue;
    claims.push_back(
        {.pid = id.first,
         .started = id.second,
         .user = known.place.user,
         .app = known.facts.app_id,
         .fresh = now - known.facts.read_at < kKept_s,
         .endpoints = known.place.guessed ? std::nullopt : std::optional(known.place.endpoints)});
  }
  return Claims(claims, processes_, listening_);
}

Observation Collector::observation(double now) const {
  Observation found;
  found.looked_at = looked_at_;
  found.bystanders = bystanders_;
  const Claims claims = this->claims(now);
  std::map<std::optional<uid_t>, int> guessed_of;
  for (const auto& [id, known] : drivers_)
    if (known.place.guessed) ++guessed_of[known.place.user];
  if (!problem_.empty()) found.problems.push_back(problem_);
  std::map<ProcessId, std::string> app_of;
  for (const auto& [id, known] : drivers_) {
    const DriverFacts& facts = known.facts;
    const std::string refused = claims.why_not(id);
    for (const std::string& problem : facts.problems) found.problems.push_back(problem_of(id.first, problem));
    if (!refused.empty()) found.problems.push_back(problem_of(id.first, refused));
    if (facts.app_id.empty() || !refused.empty()) continue;
    const std::string app = claims.name_of(known.place.user, facts.app_id);
    if (!known.place.guessed || guessed_of[known.place.user] == 1) app_of[id] = app;
    if (!claims.is_believed(id)) continue;
    if (facts.app) {
      found.apps.push_back(*facts.app);
      found.apps.back().id = app;
    }
    if (facts.progress) found.progress.emplace(app, *facts.progress);
  }
  if (failure_) {
    found.problems.push_back(
        fmt::format("cannot look for Spark's processes: {}; those found before still count", *failure_));
  } else if (unread_ > 0) {
    found.problems.push_back(
        "some processes keep their command lines from being read; they may be Spark's, unknown to berth");
  }
  for (const auto& [user, more] : too_many_) {
    found.problems.push_back(fmt::format("Spark processes: {} has {} more than the {} that berth looks at",
                                         text_of_user(user), more, kMostProcesses));
  }
  std::sort(found.apps.begin(), found.apps.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  if (found.problems.size() > kMostProblems) {
    const std::size_t more = found.problems.size() - kMostProblems;
    found.problems.resize(kMostProblems);
    found.problems.push_back(fmt::format("and {} more faults of Spark drivers", more));
  }
  for (const Process& process : processes_) {
    Member member = member_of(process);
    if (member.kind == ProcessKind::executor)
      member.identity.app = claims.name_of_executor(process.user, process.what.app, process.what.executor);
    if (const auto app = app_of.find({process.pid, process.started}); app != app_of.end())
      member.identity = {app->second, model::SparkRole::driver, std::nullopt};
    found.members.push_back(std::move(member));
  }
  return found;
}

}  // namespace berth::spark
