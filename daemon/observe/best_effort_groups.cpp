// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/best_effort_groups.h"

#include "cgroup/recognise.h"
#include "daemon/ledger/eviction_marks.h"
#include "model/path.h"

#include <algorithm>
#include <array>
#include <utility>

namespace berth::daemon {

namespace {

using model::Attribute;
using model::LowPriority;

std::optional<LowPriority> low_priority_of(const cgroup::Value& value) {
  const auto& priority = std::get<cgroup::CpuIdle>(value);
  if (priority.idle) return LowPriority::idle;
  if (priority.weight == cgroup::CpuIdle::kLeastWeight) return LowPriority::weight;
  return std::nullopt;
}

bool has_processes(const cgroup::Cgroup& cgroup) {
  std::array<char, 16> buffer{};
  const auto pids = cgroup.peek("cgroup.procs", buffer);
  return pids && !pids->empty();
}

}  // namespace

void BestEffortGroups::follow(cgroup::Discovery& discovery, Exceptions exceptions) {
  if (exceptions != exceptions_) {
    exceptions_ = std::move(exceptions);
    version_.reset();
  }
  follow(discovery);
}

void BestEffortGroups::follow(cgroup::Discovery& discovery) {
  if (version_ == discovery.groups_version()) return;
  const auto& workloads = discovery.workloads();
  auto found = discovery.best_effort_groups([&](const std::string& id) {
    const auto workload = workloads.find(id);
    // Whatever a rule says: berthd must run to take priorities back.
    if (workload != workloads.end() && is_berthd(id, workload->second.ground)) return false;
    const auto exception = exceptions_.find(id);
    if (exception != exceptions_.end()) return exception->second;
    return workload != workloads.end() &&
           workload->second.identity.workload_class == model::WorkloadClass::best_effort;
  });
  // To watch cgroups may have changed the version.
  version_ = discovery.groups_version();
  Groups groups;
  for (auto& [path, target] : found) {
    Group group{.target = std::move(target), .is_workload = workloads.contains(path)};
    const auto before = groups_.find(path);
    if (before != groups_.end() && before->second.target.cgroup->id() == group.target.cgroup->id())
      group.priority = before->second.priority;
    groups.emplace(path, std::move(group));
  }
  groups_ = std::move(groups);
}

void BestEffortGroups::read(const cgroup::Sampler::Readings& readings, cgroup::Discovery& discovery) {
  std::vector<Groups::iterator> of_users;
  std::size_t first = 0;
  for (auto it = groups_.begin(); it != groups_.end(); ++it) {
    auto& [path, group] = *it;
    if (group.is_workload) {
      // What was read before berth's last write tells nothing.
      const auto reading = readings.find(path);
      const bool known = reading != readings.end() && !reading->second.gone && reading->second.settings_known;
      group.priority = known ? reading->second.value(Attribute::cpu_idle) : std::nullopt;
    } else if (!model::may_favour_itself(group.target.ground, model::Word::write)) {
      group.priority.reset();
      if (path <= last_of_users_) ++first;
      of_users.push_back(it);
    } else {
      read_one(path, group, discovery);
    }
  }
  for (std::size_t i = 0; i < std::min(of_users.size(), kMostUsersGroups); ++i) {
    auto& [path, group] = *of_users[(first + i) % of_users.size()];
    read_one(path, group, discovery);
    last_of_users_ = path;
  }
  discovery.look_at_processes();
}

void BestEffortGroups::read_one(const std::string& path, Group& group, cgroup::Discovery& discovery) {
  const auto value = cgroup::read_value(*group.target.cgroup, Attribute::cpu_idle);
  group.priority = value ? std::optional(*value) : std::nullopt;
  // The kernel tells of no process that is moved to a cgroup whose children have some.
  if (has_processes(*group.target.cgroup)) discovery.look_at_processes(path);
}

std::vector<model::BestEffortGroup> BestEffortGroups::shown(const HeldValues& held,
                                                            const RefusedLimits& refused) const {
  std::vector<model::BestEffortGroup> groups;
  groups.reserve(groups_.size());
  for (const auto& [path, group] : groups_) {
    model::BestEffortGroup& shown = groups.emplace_back();
    shown.id = path;
    shown.cgroup_id = group.target.cgroup->id();
    // Of an idle cgroup kubelet's own write fails, and then it leaves out those that follow. systemd takes
    // it.
    const bool kubelet_fails = cgroup::is_weighed_by_kubelet(path) && group.target.systemd_unit.empty() &&
                               model::may_favour_itself(group.target.ground, model::Word::name);
    shown.fixed = kubelet_fails || refused.contains({path, Attribute::cpu_idle});
    const Held* mark = find_held(held, path);
    if (mark != nullptr && mark->cgroup_id == shown.cgroup_id) {
      shown.held = low_priority_of(mark->value);
      shown.changed_at = mark->changed_at;
      shown.owner = low_priority_of(mark->original);
    } else if (group.priority) {
      shown.owner = low_priority_of(*group.priority);
    }
  }
  return groups;
}

}  // namespace berth::daemon
