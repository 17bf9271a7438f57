// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/other_groups.h"

#include "cgroup/processes.h"
#include "model/path.h"
#include "os/proc_files.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

using model::Attribute;

bool has_content(const cgroup::Cgroup& group, const char* file, std::string_view usual) {
  std::array<char, 64> buffer{};
  const auto text = group.peek(file, buffer);
  return text && !text->empty() && *text != "\n" && !text->starts_with(usual);
}

// Whether a cpulist restricts anything. `open`: all vCPUs that it could give.
bool restricts(const model::CpuSet& cpus, const model::CpuSet& open) {
  return !cpus.empty() && !open.is_subset_of(cpus);
}

// A unit that restarts has berth's value in its new group.
bool is_berths(const HeldValues& pins, const std::string& path, std::uint64_t id,
               const cgroup::Value& value) {
  const Held* pin = find_held(pins, path);
  return pin != nullptr && (pin->cgroup_id == id || pin->value == value);
}

// Whether a thread of the group has only vCPUs of these, by its own affinity.
bool has_thread_on(const cgroup::Cgroup& group, const model::CpuSet& cpus,
                   const std::filesystem::path& proc_root) {
  constexpr std::size_t kMostThreads = 4096;
  std::size_t seen = 0;
  for (const pid_t pid : cgroup::pids_below(group, proc_root)) {
    std::error_code error;
    for (const auto& thread :
         std::filesystem::directory_iterator(proc_root / std::to_string(pid) / "task", error)) {
      if (++seen > kMostThreads) return false;
      const auto field = os::status_field(thread.path(), "Cpus_allowed_list");
      const auto allowed = model::CpuSet::parse(field.value_or(""));
      if (allowed && !allowed->empty() && allowed->is_subset_of(cpus)) return true;
    }
  }
  return false;
}

std::string set_by_owner(const model::CpuSet& cpus) {
  return fmt::format("its owner set its vCPUs to {}", cpus.to_string());
}

}  // namespace

// By the whole path of its unit, as other units may have the same name: berthd must run to take everything
// back, and all wait for the others.
std::optional<std::string> OtherGroups::why_spared(const std::string& path) const {
  if (path == "init.scope") return "PID 1 runs in it";
  if (path == "berth.slice" || path == own_path_) return "berth runs in it";
  if (path == "system.slice/dbus.service" || path == "system.slice/dbus-broker.service")
    return "the system bus runs in it";
  if (path == "system.slice/systemd-journald.service" ||
      path == "system.slice/system-systemd\\x2djournald.slice")
    return "the journal runs in it";
  if (const auto owner = owners_.find(path); owner != owners_.end())
    return "it has vCPUs of its own: " + model::evidence_text(owner->second);
  return std::nullopt;
}

// By its cpuset. To confine a group above it would take vCPUs from its owner's choice, or widen it.
std::optional<std::string> OtherGroups::why_limited(const std::string& path, const HeldValues& pins) const {
  const auto cgroup = cgroup::Cgroup::open(cgroup_root_, path);
  if (!cgroup || !(*cgroup)->is_roots("cpuset.cpus")) return std::nullopt;
  const auto value = cgroup::read_value(**cgroup, Attribute::cpus);
  if (value && is_berths(pins, path, (*cgroup)->id(), *value)) return std::nullopt;
  const auto* cpus = value ? std::get_if<model::CpuSet>(&*value) : nullptr;
  if (cpus != nullptr && restricts(*cpus, open_)) return set_by_owner(*cpus);
  return std::nullopt;
}

void OtherGroups::follow(cgroup::Discovery& discovery, const Circumstances& now) {
  if (!now.wanted) {
    groups_.clear();
    more_ = 0;
    searched_at_.reset();
    return;
  }
  std::map<std::string, model::OwnedHow> owners;
  model::CpuSet open = now.online;
  for (const model::OwnedCpus& it : now.owned) {
    if (!it.owner.empty()) owners.emplace(it.owner, it.how);
    if (it.how == model::OwnedHow::partition) open -= it.cpus;
  }
  // No event tells of a cpuset.
  const bool old = !searched_at_ || std::abs(now.time - *searched_at_) >= kSearchAgain_s;
  if (owners == owners_ && open == open_ && version_ == discovery.groups_version() && !old) return;
  owners_ = std::move(owners);
  open_ = std::move(open);
  search(discovery, now);
}

void OtherGroups::search(cgroup::Discovery& discovery, const Circumstances& now) {
  if (!own_path_) own_path_ = os::cgroup_of(proc_root_ / "self").value_or("");
  const auto held = [&now](const std::string& path, std::uint64_t id) {
    const Held* pin = find_held(now.pins, path);
    return pin != nullptr && pin->cgroup_id == id;
  };
  auto found = discovery.other_groups(
      {.spared = [this](const std::string& path) { return why_spared(path); },
       .limited = [this, &now](const std::string& path) { return why_limited(path, now.pins); },
       .own = *own_path_,
       .held = held},
      kMost, more_);
  // To watch cgroups may have changed the version.
  version_ = discovery.groups_version();
  model::CpuSet isolated;
  for (const model::OwnedCpus& it : now.owned) {
    if (it.how == model::OwnedHow::isolated) isolated |= it.cpus;
  }
  Groups groups;
  for (auto& [path, other] : found) {
    Group group{.target = std::move(other.target), .left_alone = std::move(other.left_alone)};
    const auto before = groups_.find(path);
    if (before != groups_.end() && before->second.target.cgroup->id() == group.target.cgroup->id()) {
      group.since = before->second.since;
    } else if (searched_at_) {
      group.since = now.time;
    }
    const cgroup::Cgroup& cgroup = *group.target.cgroup;
    if (group.left_alone.empty() && (has_content(cgroup, "cpuset.cpus.partition", "member") ||
                                     has_content(cgroup, "cpuset.cpus.exclusive", "\n")))
      group.left_alone = "its owner made it a cpuset partition, or gave it exclusive vCPUs";
    if (group.left_alone.empty() && group.target.ground.user && !cgroup.is_roots("cpuset.cpus"))
      group.left_alone = "its user may write its cpuset.cpus";
    if (group.left_alone.empty() && !isolated.empty() && has_thread_on(cgroup, isolated, proc_root_))
      group.left_alone = "its threads run on vCPUs that the kernel isolates";
    read_one(group);
    groups.emplace(path, std::move(group));
  }
  groups_ = std::move(groups);
  searched_at_ = now.time;
}

void OtherGroups::read() {
  for (auto& [path, group] : groups_) read_one(group);
}

void OtherGroups::read_one(Group& group) {
  const auto value = cgroup::read_value(*group.target.cgroup, Attribute::cpus);
  group.cpus = value ? std::optional(*value) : std::nullopt;
}

bool OtherGroups::holds_any(const HeldValues& pins) const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [&](const auto& it) { return find_held(pins, it.first) != nullptr; });
}

std::vector<model::OtherGroup> OtherGroups::shown(const HeldValues& pins, const RefusedLimits& refused,
                                                  AllowedCpus& allowed, const model::CpuSet& online,
                                                  double now) const {
  if (groups_.empty()) return {};
  std::set<std::string> grounds;  // of users whose best-effort work is confined there instead
  for (const auto& [id, held] : pins) {
    if (!held.at.empty()) grounds.insert(held.at);
  }
  std::vector<model::OtherGroup> others;
  others.reserve(groups_.size());
  allowed.begin_pass();  // its last one was about other vCPUs
  for (const auto& [path, group] : groups_) {
    const Held* pin = find_held(pins, path);
    if (pin != nullptr &&
        !is_berths(pins, path, group.target.cgroup->id(), group.cpus.value_or(pin->original)))
      pin = nullptr;
    if (pin == nullptr && path.ends_with(".service") && std::abs(now - group.since) < kYoung_s) continue;
    model::OtherGroup& shown = others.emplace_back();
    shown.id = path;
    shown.cgroup_id = group.target.cgroup->id();
    model::CpuSet configured;
    if (pin != nullptr) configured = pin->original_cpus();
    if (pin != nullptr && !grounds.contains(path)) {
      shown.held = pin->cpus();
      shown.changed_at = pin->changed_at;
    } else if (pin == nullptr && group.cpus) {
      configured = std::get<model::CpuSet>(*group.cpus);
    }
    shown.allowed_cpus = allowed.of(path, configured, pins, online);
    if (!group.left_alone.empty()) {
      shown.left_alone = group.left_alone;
    } else if (grounds.contains(path)) {
      shown.left_alone = "best-effort work of its user is confined there";
    } else if (refused.contains({path, Attribute::cpus})) {
      shown.left_alone = "the host refused it, or another program's value stays (berthctl log)";
    } else if (restricts(configured, open_)) {
      shown.left_alone = set_by_owner(configured);
    }
  }
  allowed.begin_pass();
  return others;
}

}  // namespace berth::daemon
