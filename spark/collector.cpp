// SPDX-License-Identifier: Apache-2.0
#include "spark/collector.h"

#include "spark/endpoints.h"
#include "spark/shared_now.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth::spark {

namespace {

constexpr double kFirstWait_s = 2;
constexpr std::size_t kNamed = 4;

// "executor 0 of app-1 (pid 7)", "Worker (pid 9)".
std::string text_of(const Member& member) {
  const model::SparkIdentity& is = member.identity;
  if (is.executor) return fmt::format("executor {} of {} (pid {})", *is.executor, is.app, member.pid);
  if (!is.app.empty()) return fmt::format("the driver of {} (pid {})", is.app, member.pid);
  return fmt::format("{} (pid {})", member.name, member.pid);
}

// As its command line says; a driver's does not say its application.
Member member_of(const Process& process) {
  Member member{.pid = process.pid,
                .name = process.what.name,
                .cgroup = process.cgroup,
                .kind = process.what.kind,
                .identity = {}};
  if (process.what.kind == ProcessKind::executor)
    member.identity = {process.what.app, model::SparkRole::executor, process.what.executor};
  return member;
}

// "a, b, c"; of many the first few.
std::string list_of(std::vector<std::string> parts, std::size_t more) {
  if (parts.size() > kNamed) {
    more += parts.size() - kNamed;
    parts.resize(kNamed);
  }
  std::string list = fmt::format("{}", fmt::join(parts, ", "));
  return more > 0 ? fmt::format("{} and {} more", list, more) : list;
}

// Those of the workload's own cgroup and of all below it.
template <typename Take>
void each_within(const std::map<std::string, Bystanders>& bystanders, const std::string& workload,
                 Take take) {
  if (const auto own = bystanders.find(workload); own != bystanders.end()) take(own->second);
  const std::string below = workload + "/";
  for (auto at = bystanders.lower_bound(below); at != bystanders.end() && at->first.starts_with(below); ++at)
    take(at->second);
}

// Why whoever kills the workload would hit more than one executor or driver; nullopt where that is not so.
std::optional<std::string> more_than_one(const std::vector<const Member*>& members,
                                         const std::string& workload,
                                         const std::map<std::string, Bystanders>* bystanders) {
  std::vector<std::string> parts;
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
  return fmt::format("Spark's {} (pid {}) serves executors elsewhere", only.name, only.pid);
}

Occupancy occupancy_of(const std::vector<const Member*>& members, const std::string& workload,
                       const Observation& observation) {
  const Member& only = *members.front();
  Occupancy found;
  if (members.size() == 1 && !only.identity.app.empty()) found.identity = only.identity;
  found.spared = more_than_one(members, workload, observation.bystanders.get());
  if (!found.spared && !found.identity)
    found.spared = fmt::format("{} (pid {}) drives an application that is not known", only.name, only.pid);
  return found;
}

}  // namespace

std::map<std::string, Occupancy> occupancies(const Observation& observation,
                                             const std::function<bool(const std::string& id)>& is_workload) {
  std::map<std::string, std::vector<const Member*>> by_workload;
  for (const Member& member : observation.members) {
    std::string path = member.cgroup;
    while (!path.empty() && !is_workload(path)) {
      const std::size_t slash = path.rfind('/');
      path.resize(slash == std::string::npos ? 0 : slash);
    }
    if (!path.empty()) by_workload[path].push_back(&member);
  }
  std::map<std::string, Occupancy> found;
  for (const auto& [workload, members] : by_workload)
    found.emplace(workload, occupancy_of(members, workload, observation));
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
    const ProcessId id{process.pid, process.started};
    alive.insert(id);
    const auto known = drivers_.find(id);
    // Until it has an application: its web server comes after the process does.
    if (known != drivers_.end() && !known->second.driver.app_id().empty()) continue;
    const auto endpoints = listening_endpoints(proc_root_, process.pid);
    Known fresh{.driver = Driver(endpoints ? *endpoints : usual_endpoints()),
                .guessed = !endpoints,
                .read_at = 0,
                .ask_at = known == drivers_.end() ? now : known->second.ask_at,
                .wait_s = known == drivers_.end() ? 0 : known->second.wait_s,
                .problem = known == drivers_.end() ? "" : known->second.problem};
    drivers_.insert_or_assign(id, std::move(fresh));
  }
  std::erase_if(drivers_, [&](const auto& item) { return alive.count(item.first) == 0; });
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
  for (const Member& member : members) here.push_back(&member);
  const auto bystanders = find_bystanders(proc_root, processes);
  return more_than_one(here, workload, &bystanders);
}

void Collector::ask(const ProcessId& id, Known& known, double now) {
  if (now < known.ask_at && known.ask_at - now <= kLongestWait_s) return;
  std::set<std::string> taken;
  for (const auto& [other, its] : drivers_)
    if (other != id && !its.driver.app_id().empty()) taken.insert(its.driver.app_id());
  // One that is known by its process is asked whatever others say.
  const auto done = known.driver.read(get_, now, known.guessed ? taken : std::set<std::string>());
  if (done) {
    known.read_at = now;
    known.wait_s = 0;
    known.ask_at = now;
    known.problem.clear();
    return;
  }
  known.wait_s = std::clamp(known.wait_s * 2, kFirstWait_s, kLongestWait_s);
  known.ask_at = now + known.wait_s;
  known.problem = fmt::format("Spark driver, pid {}: {}", id.first, done.error().message());
}

Observation Collector::collect(double now) {
  look(now);
  for (auto& [id, known] : drivers_) ask(id, known, now);
  return observation(now);
}

Observation Collector::processes(double now) {
  look(now);
  return observation(now);
}

Observation Collector::observation(double now) const {
  Observation found;
  found.bystanders = bystanders_;
  std::map<ProcessId, std::string> app_of;
  std::map<std::string, const Known*> by_app;
  std::set<std::string> disputed;
  for (const auto& [id, known] : drivers_) {
    if (!known.problem.empty()) found.problems.push_back(known.problem);
    const std::string& app = known.driver.app_id();
    if (app.empty()) continue;
    if (!known.guessed || drivers_.size() == 1) app_of[id] = app;
    if (now - known.read_at >= kKept_s) continue;
    if (!by_app.emplace(app, &known).second) disputed.insert(app);
  }
  // Of two that say the same id, at least one lies.
  for (const std::string& app : disputed) by_app.erase(app);
  for (const auto& [id, known] : by_app)
    if (auto app = known->driver.app(now)) found.apps.push_back(*std::move(app));
  for (const Process& process : processes_) {
    Member member = member_of(process);
    if (const auto app = app_of.find({process.pid, process.started}); app != app_of.end())
      member.identity = {app->second, model::SparkRole::driver, std::nullopt};
    found.members.push_back(std::move(member));
  }
  return found;
}

}  // namespace berth::spark
