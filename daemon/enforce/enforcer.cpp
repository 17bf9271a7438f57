// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforce/enforcer.h"

#include "model/path.h"

#include <iterator>
#include <set>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

using model::Attribute;
using model::ErrorKind;

bool Enforcer::refuses(const model::Action& action) const {
  const auto* id = action.workload();
  if (id == nullptr) return false;
  if (left_alone_.count(*id) > 0) return true;
  const auto attribute = action.attribute();
  if (!attribute || refused_.count({*id, *attribute}) == 0) return false;
  return *attribute != Attribute::cpus || !confined_at_.contains(*id);
}

std::vector<LogEntry> Enforcer::follow(const Found& found, double now) {
  const auto run_of = [&found](const std::string& id) {
    const auto known = found.find(id);
    return known == found.end() ? 0 : known->second.cgroup->id();
  };
  std::set<Key> departed;
  for (const Attribute attribute : model::kAttributes) {
    if (attribute == Attribute::cpu_idle) continue;  // of groups, see release_former_groups()
    for (auto& [id, held] : holdings_.of(attribute)) {
      // See confine_grounds() and release_former_others().
      if (attribute == Attribute::cpus && (grounds_.contains(id) || is_other(id))) continue;
      const auto run = run_of(id);
      if (run == held.cgroup_id) continue;
      if (run != 0 && has_kept(found.at(id), held.value)) {
        held.cgroup_id = run;
      } else {
        departed.emplace(id, attribute);
      }
    }
  }
  for (auto it = left_alone_.begin(); it != left_alone_.end();) {
    const auto& [id, item] = *it;
    if (run_of(id) == item.cgroup_id) {
      ++it;
      continue;
    }
    for (const Attribute attribute : model::kAttributes) departed.emplace(id, attribute);
    it = left_alone_.erase(it);
  }
  std::erase_if(refused_, [&](const auto& item) {
    const auto& [id, attribute] = item.first;
    const bool of_group = attribute == Attribute::cpu_idle || (attribute == Attribute::cpus && is_other(id));
    return !of_group && run_of(id) != item.second;
  });
  std::erase_if(confined_at_, [&](const auto& item) {
    return !refused_.contains({item.first, Attribute::cpus});
  });

  // Without a quota, only its vCPUs limit the workload: another program's change of them counts at once.
  for (const auto& [id, held] : holdings_.of(Attribute::cpu_quota)) {
    if (held.cause == model::HeldCause::lifted) read_again_(id);
  }

  std::vector<LogEntry> entries;
  for (const auto& [id, attribute] : departed) {
    // This holds also where the cgroup still exists and only is no workload any more: then it gets its own
    // value back.
    release(id, attribute, now, "the workload ended", entries);
  }
  // After the release: a group that was made anew under its name has no pin any more.
  remember_offences(found, now);
  settle(entries, now);
  return entries;
}

// Whether a new run has berth's value. systemd keeps it with a unit that restarts, but not with a transient
// unit that was made anew under the same name.
bool Enforcer::has_kept(const cgroup::FoundWorkload& target, const cgroup::Value& value) const {
  const Attribute attribute = attribute_of(value);
  if (!writer_.original(target, attribute)) return false;
  const auto current = cgroup::read_value(*target.cgroup, attribute);
  return current && *current == value;
}

void Enforcer::settle(std::vector<LogEntry>& entries, double now) {
  // systemd reads all its units for each. A user can have berth give values back in every tick.
  constexpr double kPause_s = 10;
  if (!settle_ || (settled_at_ && now >= *settled_at_ && now - *settled_at_ < kPause_s)) return;
  settle_ = false;
  settled_at_ = now;
  if (const auto settled = writer_.settle(); !settled) {
    LogEntry entry = blank_entry(now, "restore", "", Attribute::cpus, "");
    entry.attribute.clear();
    entry.result = "failed";
    entry.error = settled.error().message();
    entries.push_back(std::move(entry));
  }
}

// Puts one attribute back, if berth changed it, without an action that asks for it.
void Enforcer::release(const std::string& id, Attribute attribute, double now, const std::string& reason,
                       std::vector<LogEntry>& entries) {
  holdings_.of(attribute).erase(id);
  auto report = writer_.restore(id, attribute);
  read_again_(id);
  if (!report) {  // berth never wrote
    attempts_.erase({id, attribute});
    return;
  }
  if (report->left.empty()) {
    attempts_.erase({id, attribute});
  } else if (!worth_saying(++attempts_[{id, attribute}])) {  // release_forgotten() tries again
    return;
  }
  report->gone.clear();  // the group's end is the occasion, not news
  auto more = entries_of(*report, now, kEnforce, reason);
  std::move(more.begin(), more.end(), std::back_inserter(entries));
  settle_ = true;
}

std::vector<LogEntry> Enforcer::let_go(const std::string& id, double now, const std::string& reason) {
  std::vector<LogEntry> entries;
  for (const Attribute attribute : model::kAttributes) {
    if (attribute == Attribute::cpus || attribute == Attribute::memory_nodes) continue;
    if (find_held(holdings_.of(attribute), id) != nullptr)
      release(id, attribute, now, "the workload is left alone: " + reason, entries);
  }
  settle(entries, now);
  return entries;
}

// Puts back changes whose outcome is unknown, and which no plan has any more.
void Enforcer::release_forgotten(const model::Plan& plan, std::vector<LogEntry>& entries) {
  std::set<Key> forgotten;
  for (const auto& [key, attempts] : attempts_) {
    if (find_held(holdings_.of(key.second), key.first) == nullptr) forgotten.insert(key);
  }
  for (const auto& action : plan.actions) {
    const auto* id = action.workload();
    if (id == nullptr || forgotten.empty()) continue;
    for (const Attribute attribute : model::kAttributes) forgotten.erase({*id, attribute});
  }
  for (const auto& [id, attribute] : forgotten) {
    release(id, attribute, plan.time, "an earlier change had an unknown outcome", entries);
  }
}

void Enforcer::release_former_groups(const Groups& groups, std::chrono::steady_clock::time_point deadline,
                                     double now, std::vector<LogEntry>& entries) {
  const auto run_of = [&groups](const std::string& id) {
    const auto group = groups.find(id);
    return group == groups.end() ? 0 : group->second.target.cgroup->id();
  };
  std::erase_if(refused_, [&](const auto& item) {
    return item.first.second == Attribute::cpu_idle && run_of(item.first.first) != item.second;
  });
  std::vector<std::string> former;
  for (auto& [id, held] : holdings_.of(Attribute::cpu_idle)) {
    const std::uint64_t run = run_of(id);
    if (run == held.cgroup_id) continue;
    if (run != 0 && has_kept(groups.at(id).target, held.value)) {
      held.cgroup_id = run;
    } else {
      former.push_back(id);
    }
  }
  for (const std::string& id : former) {
    if (std::chrono::steady_clock::now() >= deadline) return;
    release(id, Attribute::cpu_idle, now, "it is no group of best-effort work any more", entries);
  }
}

void Enforcer::release_former_others(const Found& found, const Others& others,
                                     std::chrono::steady_clock::time_point deadline, double now,
                                     std::vector<LogEntry>& entries) {
  const auto lies_in = [](const auto& groups, const std::string& id) {
    const auto below = groups.lower_bound(id + '/');
    return below != groups.end() && model::is_within(below->first, id);
  };
  const auto run_of = [&others](const std::string& id) {
    const auto group = others.find(id);
    return group == others.end() ? 0 : group->second.target.cgroup->id();
  };
  auto& pins = holdings_.of(Attribute::cpus);
  for (auto at = others_.begin(); at != others_.end();) {
    const std::string id = *at++;
    const std::uint64_t run = run_of(id);
    const auto refusal = refused_.find({id, Attribute::cpus});
    if (refusal != refused_.end() && refusal->second != run) refused_.erase(refusal);
    const auto held = pins.find(id);
    // A group that has become the outermost one of a user, with best-effort work that is confined there.
    if (held == pins.end() || grounds_.contains(id)) {
      const Key key(id, Attribute::cpus);
      if (!refused_.contains(key) && !attempts_.contains(key)) others_.erase(id);
      continue;
    }
    if (run == held->second.cgroup_id) continue;
    if (run != 0 && has_kept(others.at(id).target, held->second.value)) {
      held->second.cgroup_id = run;
      continue;
    }
    // What lies in it now is to get vCPUs in this tick. Only root can have named that.
    const bool waited_for = lies_in(found, id) || lies_in(others, id);
    if (!waited_for && std::chrono::steady_clock::now() >= deadline) continue;
    release(id, Attribute::cpus, now,
            run == 0 ? "it has ended, or something in it must not be confined" : "it was made anew", entries);
    if (!attempts_.contains({id, Attribute::cpus})) others_.erase(id);
  }
}

void Enforcer::take_over(const std::vector<cgroup::UndoRecord>& records) {
  for (const auto& record : records) attempts_.try_emplace({record.path, record.attribute()}, 1);
}

// Releases all values of a workload that berth leaves alone, except the one that an alarm is about.
void Enforcer::leave_alone(const std::string& id, LeftAlone why, double now, std::vector<LogEntry>& entries) {
  for (const Attribute attribute : model::kAttributes) {
    if (why.held && why.attribute == attribute) {
      holdings_.of(attribute).erase(id);
    } else if (find_held(holdings_.of(attribute), id) != nullptr) {
      release(id, attribute, now, "the workload is left alone: " + why.reason, entries);
    }
  }
  left_alone_.insert_or_assign(id, std::move(why));
}

// Whether a group of other work above it lacks some of the vCPUs. It gets its own back later, or others.
bool Enforcer::withheld_by_other(const std::string& id, const model::CpuSet& cpus) const {
  for (std::string path(model::parent_path(id)); !path.empty(); path = model::parent_path(path)) {
    if (!is_other(path)) continue;
    const Held* held = find_held(holdings_.of(Attribute::cpus), path);
    if (held != nullptr ? !cpus.is_subset_of(held->cpus()) : attempts_.contains({path, Attribute::cpus}))
      return true;
  }
  return false;
}

void Enforcer::fail(const cgroup::FoundWorkload& target, Attribute attribute, const model::Error& error,
                    LogEntry entry, std::vector<LogEntry>& entries) {
  const std::string id = target.identity.id;
  // A missing control file is "gone" as well, but of a group that is still there.
  if (error.kind() == ErrorKind::gone && !target.cgroup->is_current()) {
    entry.result = "gone";
    entry.error = error.message();
    entries.push_back(std::move(entry));
    return;
  }
  entry.result = "failed";
  if (error.kind() == ErrorKind::transient) {
    const auto attempt = ++attempts_[{id, attribute}];
    entry.error = fmt::format("{}; attempt {}, berth will try again", error.message(), attempt);
    if (worth_saying(attempt)) entries.push_back(std::move(entry));
    return;
  }
  entry.error = error.message();
  const double time = entry.time;
  entries.push_back(std::move(entry));
  attempts_.erase({id, attribute});
  if (is_users_best_effort(target)) {
    cannot_hold(target, attribute, time, error.message(), false, entries);
    return;
  }
  if (attribute == Attribute::cpus && !is_other(id)) {
    leave_alone(id, LeftAlone{target.cgroup->id(), LeftAlone::Cause::error, error.message(), attribute, {}},
                time, entries);
    return;
  }
  // A workload can do without a limit, but not without its vCPUs.
  refused_.insert_or_assign(Key{id, attribute}, target.cgroup->id());
  if (find_held(holdings_.of(attribute), id) != nullptr) {
    release(id, attribute, time, "the limit cannot be changed: " + error.message(), entries);
  }
}

void Enforcer::retry_failed() {
  std::erase_if(left_alone_, [](const auto& item) { return item.second.cause == LeftAlone::Cause::error; });
  refused_.clear();
  confined_at_.clear();
  offences_.clear();
}

void Enforcer::retry_foreign() {
  std::erase_if(left_alone_, [](const auto& item) { return item.second.cause != LeftAlone::Cause::error; });
}

}  // namespace berth::daemon
