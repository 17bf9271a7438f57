// SPDX-License-Identifier: Apache-2.0
// Best-effort work of users that cannot be confined at its own group: it is confined at the outermost group
// of its user. Root owns that group's control files.
#include "cgroup/recognise.h"
#include "daemon/enforce/enforcer.h"
#include "model/path.h"

#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

using model::Attribute;
using model::CpuSet;
using model::ErrorKind;

namespace {

constexpr const char* kPinFile = "cpuset.cpus";

// The group at `path`, above the workload's.
model::Result<cgroup::FoundWorkload> group_above(const cgroup::FoundWorkload& target,
                                                 const std::string& path) {
  std::shared_ptr<cgroup::Cgroup> group = target.cgroup;
  while (group->path() != path && !group->path().empty()) {
    auto above = group->above();
    if (!above) return model::fail(above.error());
    group = std::move(*above);
  }
  if (group->path().empty() || !group->is_roots(kPinFile)) {
    return model::fail(ErrorKind::refused,
                       fmt::format("\"{}\" cannot be confined at \"{}\" either: its {} is not root's",
                                   target.identity.id, path, kPinFile));
  }
  cgroup::FoundWorkload ground;
  ground.cgroup = std::move(group);
  ground.identity.id = path;
  ground.systemd_unit = cgroup::systemd_unit(path);
  ground.ground = {.user = target.ground.user, .outermost = true};
  return ground;
}

}  // namespace

// The attribute cannot be set at the workload's own group. All else of it is managed as before.
void Enforcer::cannot_hold(const cgroup::FoundWorkload& target, Attribute attribute, double now,
                           const std::string& why, bool foreign, std::vector<LogEntry>& entries) {
  const std::string id = target.identity.id;
  attempts_.erase({id, attribute});
  refused_.insert_or_assign(Key{id, attribute}, target.cgroup->id());
  if (attribute == Attribute::cpus && !target.confined_at.empty() && target.confined_at != id) {
    confined_at_.insert_or_assign(id, target.confined_at);
    Offence& offence = offences_[target.confined_at];
    offence.given_up = true;
    offence.last = now;
  }
  if (find_held(holdings_.of(attribute), id) == nullptr) return;
  // A foreign value stays, as it is not berth's.
  if (foreign && writer_.disown(id, attribute)) {
    holdings_.of(attribute).erase(id);
    read_again_(id);
  } else {
    release(id, attribute, now, "it cannot be held: " + why, entries);
  }
}

void Enforcer::remember_offences(const Found& found, double now) {
  std::erase_if(offences_, [now](const auto& item) { return now - item.second.last >= kRemembered_s; });
  if (offences_.empty()) return;
  for (const auto& [id, target] : found) {
    if (!is_users_best_effort(target) || target.confined_at == id) continue;
    const auto offence = offences_.find(target.confined_at);
    if (offence == offences_.end() || !offence->second.given_up) continue;
    if (find_held(holdings_.of(Attribute::cpus), id) != nullptr || refused_.contains({id, Attribute::cpus}))
      continue;
    refused_.insert_or_assign(Key{id, Attribute::cpus}, target.cgroup->id());
    confined_at_.insert_or_assign(id, target.confined_at);
  }
}

void Enforcer::pin_at_ground(const cgroup::FoundWorkload& target, const model::CpuSet& cpus, LogEntry entry,
                             std::vector<LogEntry>& entries) {
  const std::string& id = target.identity.id;
  const Held* before = find_held(holdings_.of(Attribute::cpus), id);
  Held held = make_held(target.cgroup->id(), cpus, CpuSet(), entry.time);
  held.at = confined_at_.at(id);
  if (before != nullptr) held.since = before->since;
  entry.old_value = before != nullptr ? cgroup::to_text(before->value) : "";
  entry.new_value = cgroup::to_text(held.value);
  entry.result = "applied";
  entry.reason +=
      fmt::format("; its own group cannot be confined, so its user's outermost group is: {}", held.at);
  holdings_.of(Attribute::cpus).insert_or_assign(id, std::move(held));
  entries.push_back(std::move(entry));
}

// Gives each user's outermost group the vCPUs of all pins in it, if any of them is held there.
void Enforcer::confine_grounds(const Found& found, double now, std::vector<LogEntry>& entries) {
  std::map<std::string, CpuSet> wanted;
  std::map<std::string, std::string> asked_by;
  for (const auto& [id, held] : holdings_.of(Attribute::cpus)) {
    if (held.at.empty()) continue;
    wanted[held.at] |= held.cpus();
    asked_by.emplace(held.at, id);
  }
  for (auto& [path, cpus] : wanted) {
    const std::string below = path + '/';
    for (auto at = holdings_.of(Attribute::cpus).lower_bound(below);
         at != holdings_.of(Attribute::cpus).end() && at->first.starts_with(below); ++at)
      cpus |= at->second.cpus();
  }
  for (auto at = grounds_.begin(); at != grounds_.end();) {
    const std::string path = at->first;
    if (wanted.contains(path) && at->second.cgroup->is_current()) {
      ++at;
      continue;
    }
    at = grounds_.erase(at);
    release(path, Attribute::cpus, now, "no work in it has to be confined there any more", entries);
  }
  for (const auto& [path, cpus] : wanted) {
    auto ground = grounds_.find(path);
    if (ground == grounds_.end()) {
      const auto asking = found.find(asked_by.at(path));
      if (asking == found.end()) continue;
      auto made = group_above(asking->second, path);
      if (made) {
        ground = grounds_.emplace(path, std::move(*made)).first;
      } else if (made.error().kind() != ErrorKind::gone) {
        LogEntry entry = blank_entry(now, "pin", path, Attribute::cpus, "interference");
        entry.result = "failed";
        entry.error = made.error().message();
        entries.push_back(std::move(entry));
      }
    }
    if (ground != grounds_.end() && confine_ground(ground->second, cpus, now, entries)) continue;
    // Nothing in it is confined then.
    if (ground != grounds_.end()) grounds_.erase(ground);
    // Clang 14 captures no structured binding.
    std::erase_if(holdings_.of(Attribute::cpus), [&group = path](const auto& item) {
      return item.first == group || item.second.at == group;
    });
    std::erase_if(confined_at_, [&group = path](const auto& item) { return item.second == group; });
    offences_.erase(path);
  }
}

// Returns false where it cannot be confined for good.
bool Enforcer::confine_ground(cgroup::FoundWorkload& ground, const CpuSet& cpus, double now,
                              std::vector<LogEntry>& entries) {
  const std::string& path = ground.identity.id;
  const Held* held = find_held(holdings_.of(Attribute::cpus), path);
  const auto present = cgroup::read_value(*ground.cgroup, Attribute::cpus);
  if (held != nullptr && present && *present == held->value && held->cpus() == cpus) return true;
  if (held != nullptr && present && writer_.drift(ground, *present) == cgroup::Drift::foreign) {
    LogEntry entry = blank_entry(now, "foreign", path, Attribute::cpus, "foreign-writer");
    entry.old_value = cgroup::to_text(held->value);
    entry.new_value = cgroup::to_text(*present);
    entry.result = "left";
    entry.reason = "another program of root changed it, so berth leaves it alone";
    entries.push_back(std::move(entry));
    (void)writer_.disown(path, Attribute::cpus);
    return false;
  }
  LogEntry entry = blank_entry(now, "pin", path, Attribute::cpus, "interference");
  entry.reason = "work in it, whose own groups its user keeps from being confined, shares these vCPUs";
  entry.new_value = cgroup::to_text(cgroup::Value(cpus));
  const auto set = writer_.set(ground, cpus);
  if (!set) {
    entry.result = "failed";
    entry.error = set.error().message();
    const bool for_good = set.error().kind() != ErrorKind::transient && !withheld_by_other(path, cpus);
    if (for_good || worth_saying(++attempts_[{path, Attribute::cpus}])) entries.push_back(std::move(entry));
    return !for_good;
  }
  attempts_.erase({path, Attribute::cpus});
  Held now_held = make_held(ground.cgroup->id(), writer_.written(ground, Attribute::cpus).value_or(cpus),
                            writer_.original(ground, Attribute::cpus).value_or(cpus), now);
  if (held != nullptr) now_held.since = held->since;
  if (*set) entry.old_value = cgroup::to_text((*set)->before);
  entry.result = "applied";
  if (*set || held == nullptr) entries.push_back(std::move(entry));
  holdings_.of(Attribute::cpus).insert_or_assign(path, std::move(now_held));
  return true;
}

}  // namespace berth::daemon
