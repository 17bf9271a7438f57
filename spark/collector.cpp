// SPDX-License-Identifier: Apache-2.0
#include "spark/collector.h"

#include "model/name.h"
#include "os/proc_files.h"
#include "spark/endpoints.h"
#include "spark/shared_now.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/core.h>

namespace berth::spark {

namespace {

constexpr double kFirstWait_s = 2;
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
  return fmt::format("Spark's {} (pid {}) serves executors in other cgroups", only.name, only.pid);
}

using MembersByWorkload = std::map<std::string, std::vector<const Member*>>;

MembersByWorkload members_by_workload(const Observation& observation,
                                      const std::function<bool(const std::string& id)>& is_workload) {
  MembersByWorkload by_workload;
  for (const Member& member : observation.members) {
    std::string path = member.cgroup;
    while (!path.empty() && !is_workload(path)) {
      const std::size_t slash = path.rfind('/');
      path.resize(slash == std::string::npos ? 0 : slash);
    }
    if (!path.empty()) by_workload[path].push_back(&member);
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

void Collector::look(double now) {
  if (looked_at_ != 0 && now >= looked_at_ && now - looked_at_ < kLookAgain_s) return;
  looked_at_ = now;
  processes_ = find_processes(proc_root_);
  bystanders_.reset();
  if (!processes_.empty()) {
    bystanders_ =
        std::make_shared<const std::map<std::string, Bystanders>>(find_bystanders(proc_root_, processes_));
  }
  std::set<ProcessId> alive;
  for (const Process& process : processes_) {
    if (process.what.kind != ProcessKind::driver) continue;
    alive.insert({process.pid, process.started});
    meet(process, now);
  }
  std::erase_if(drivers_, [&](const auto& item) { return alive.count(item.first) == 0; });
}

void Collector::meet(const Process& process, double now) {
  const ProcessId id{process.pid, process.started};
  const auto known = drivers_.find(id);
  // Look again until it has an application: its web server starts after the process.
  if (known != drivers_.end() && !known->second.driver.app_id().empty()) return;
  const auto own = listening_endpoints(proc_root_, process.pid);
  auto endpoints = own ? *own : usual_endpoints(proc_root_, process.pid);
  if (known != drivers_.end() && known->second.endpoints == endpoints) return;
  const auto user = os::user_of(proc_root_ / std::to_string(process.pid));
  Known fresh{.driver = Driver(endpoints, user, open_),
              .endpoints = endpoints,
              .guessed_of = own || endpoints.empty() ? std::nullopt : user,
              .asked = 0,
              .read_at = 0,
              .ask_at = now,
              .wait_s = 0,
              .problem = {}};
  if (known != drivers_.end()) {
    fresh.asked = known->second.asked;
    fresh.ask_at = known->second.ask_at;
    fresh.wait_s = known->second.wait_s;
    fresh.problem = known->second.problem;
  }
  drivers_.insert_or_assign(id, std::move(fresh));
}

std::optional<std::string> shared_now(const std::filesystem::path& proc_root, const std::string& workload) {
  const auto processes = find_processes(proc_root);
  std::vector<Member> members;
  for (const Process& process : processes) {
    if (process.cgroup == workload || process.cgroup.starts_with(workload + "/"))
      members.push_back(member_of(process));
  }
  if (members.empty()) return std::nullopt;
  std::vector<const Member*> here;
  here.reserve(members.size());
  for (const Member& member : members) here.push_back(&member);
  const auto bystanders = find_bystanders(proc_root, processes);
  return more_than_one(here, workload, &bystanders);
}

Collector::Collector(std::filesystem::path proc_root, Get get, OpenFile open, Clock clock)
    : proc_root_(std::move(proc_root)),
      get_(std::move(get)),
      open_(std::move(open)),
      clock_(std::move(clock)) {}

Collector::Clock Collector::steady_clock() {
  return [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
}

void Collector::ask(const ProcessId& id, Known& known, double now, double round_ends) {
  known.asked = ++turns_;
  const double turn_ends = std::min(clock_() + kTurn_s, round_ends);
  std::set<std::string> taken;
  for (const auto& [other, its] : drivers_)
    if (other != id && !its.driver.app_id().empty()) taken.insert(its.driver.app_id());
  // A driver found by its own process is asked, whatever the others have told.
  const auto done = known.driver.read(get_, now, known.guessed_of ? taken : std::set<std::string>(),
                                      [&] { return clock_() >= turn_ends; });
  if (done) {
    known.read_at = now;
    known.wait_s = 0;
    known.ask_at = now;
    known.problem.clear();
    return;
  }
  if (known.driver.searching()) {
    known.ask_at = now;
    return;
  }
  known.wait_s = std::clamp(known.wait_s * 2, kFirstWait_s, kLongestWait_s);
  known.ask_at = now + known.wait_s;
  known.problem = problem_of(id.first, done.error().message());
}

Observation Collector::collect(double now) {
  look(now);
  const double round_ends = clock_() + kRound_s;
  std::vector<std::pair<const ProcessId, Known>*> due;
  for (auto& item : drivers_) {
    const double wait_s = item.second.ask_at - now;
    if (wait_s <= 0 || wait_s > kLongestWait_s) due.push_back(&item);
  }
  const auto is_uncertain = [](const Known& known) {
    return known.driver.app_id().empty() || known.wait_s > 0;
  };
  std::sort(due.begin(), due.end(), [&](const auto* a, const auto* b) {
    const auto key = [&](const Known& known) { return std::make_pair(is_uncertain(known), known.asked); };
    return std::make_pair(key(a->second), a->first) < std::make_pair(key(b->second), b->first);
  });
  // Else drivers that answer slowly could keep the others from ever being heard.
  if (++rounds_ % 2 == 0) {
    const auto first =
        std::find_if(due.begin(), due.end(), [&](const auto* item) { return is_uncertain(item->second); });
    if (first != due.end()) std::rotate(due.begin(), first, first + 1);
  }
  for (auto* item : due) {
    if (clock_() >= round_ends) break;
    ask(item->first, item->second, now, round_ends);
  }
  return observation(now);
}

bool Collector::goes_on() const {
  return std::any_of(drivers_.begin(), drivers_.end(), [](const auto& item) {
    return item.second.asked == 0 || item.second.driver.searching();
  });
}

Observation Collector::processes(double now) {
  look(now);
  return observation(now);
}

Observation Collector::observation(double now) const {
  Observation found;
  found.looked_at = looked_at_;
  found.bystanders = bystanders_;
  std::map<ProcessId, std::string> app_of;
  std::map<std::string, const Known*> by_app;
  std::set<std::string> disputed;
  std::map<uid_t, int> guessed_of;
  for (const auto& [id, known] : drivers_)
    if (known.guessed_of) ++guessed_of[*known.guessed_of];
  for (const auto& [id, known] : drivers_) {
    if (!known.problem.empty()) found.problems.push_back(known.problem);
    for (const std::string& problem : {known.driver.log_problem(), known.driver.cached_problem()}) {
      if (!problem.empty()) found.problems.push_back(problem_of(id.first, problem));
    }
    const std::string& app = known.driver.app_id();
    if (app.empty()) continue;
    if (!known.guessed_of || guessed_of[*known.guessed_of] == 1) app_of[id] = app;
    if (now - known.read_at >= kKept_s) continue;
    if (!by_app.emplace(app, &known).second) disputed.insert(app);
  }
  if (found.problems.size() > kMostProblems) {
    const std::size_t more = found.problems.size() - kMostProblems;
    found.problems.resize(kMostProblems);
    found.problems.push_back(fmt::format("and {} more faults of Spark drivers", more));
  }
  // If two drivers tell the same id, at least one is wrong.
  for (const std::string& app : disputed) by_app.erase(app);
  for (const auto& [id, known] : by_app) {
    if (auto app = known->driver.app(now)) found.apps.push_back(*std::move(app));
    if (const auto& progress = known->driver.progress()) found.progress.emplace(id, *progress);
  }
  for (const Process& process : processes_) {
    Member member = member_of(process);
    if (const auto app = app_of.find({process.pid, process.started}); app != app_of.end())
      member.identity = {app->second, model::SparkRole::driver, std::nullopt};
    found.members.push_back(std::move(member));
  }
  return found;
}

}  // namespace berth::spark
