// SPDX-License-Identifier: Apache-2.0
// Finds held values that another program changed, and leaves them or writes them again.
#include "cgroup/recognise.h"
#include "daemon/enforce/enforcer.h"
#include "daemon/observe/in_order.h"

#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

using model::Attribute;

namespace {

// While systemd reads its units again, a unit's value may change for a moment.
constexpr int kTicksUntilForeignUnit = 2;
// So often is a value written again that the owner of its group changes.
constexpr std::uint32_t kMostReasserted = 3;
// A container runtime starts the first process of a container before it writes the container's own cpuset.
constexpr double kSetUp_s = 5;

bool is_as_held(const cgroup::Sampler::Reading& reading, Attribute attribute, const Held& held) {
  if (attribute == Attribute::cpus) return reading.cpus == held.cpus();
  const auto value = reading.value(attribute);
  return !value || *value == held.value;  // not read yet
}

// Whether a value that is not berth's completes the settings of a workload that berth pinned as it appeared.
// That is the owner's value then, and no meddling. systemd has a unit's settings there before its processes.
bool is_set_up(const cgroup::FoundWorkload& target, Attribute attribute, const Held& held) {
  return attribute == Attribute::cpus && !held.stood && target.systemd_unit.empty() &&
         !is_users_best_effort(target) && std::abs(held.since - target.identity.created) < kSetUp_s;
}

}  // namespace

std::vector<LogEntry> Enforcer::check(const Observer::Readings& readings, const Found& found,
                                      const Groups& groups, const Others& others,
                                      config::ForeignWriter on_foreign, double now) {
  std::vector<LogEntry> entries;
  for (const auto& [id, group] : others) {
    if (!group.cpus || grounds_.contains(id)) continue;
    const Held* held = find_held(holdings_.of(Attribute::cpus), id);
    if (held == nullptr && take_up(group.target, *group.cpus, now)) others_.insert(id);
    if (held == nullptr || !is_other(id) || held->cgroup_id != group.target.cgroup->id()) continue;
    judge_value(group.target, *group.cpus, on_foreign, now, entries);
  }
  for (const auto& [id, group] : groups) {
    if (!group.priority) continue;
    const Held* held = find_held(holdings_.of(Attribute::cpu_idle), id);
    if (held == nullptr) take_up(group.target, *group.priority, now);
    if (held == nullptr || held->cgroup_id != group.target.cgroup->id()) continue;
    judge_value(group.target, *group.priority, on_foreign, now, entries);
  }
  for (const Attribute attribute : model::kAttributes) {
    if (attribute == Attribute::cpu_idle) continue;  // of groups
    auto& values = holdings_.of(attribute);
    InOrder readings_in_order(readings);
    for (auto it = values.begin(); it != values.end();) {
      auto& [id, held] = *it++;  // the code below may erase it
      if (!held.at.empty()) continue;
      const auto* reading = readings_in_order.find(id);
      // A setting that was read before berth wrote it shows no change by another program.
      if (reading == nullptr || reading->gone || !reading->settings_known) continue;
      if (is_as_held(*reading, attribute, held)) {
        held.ticks_foreign = 0;
        held.stood = true;
        continue;
      }
      const auto target = found.find(id);
      if (target == found.end()) continue;
      judge_value(target->second, *reading->value(attribute), on_foreign, now, entries);
    }
  }
  take_up_again(readings, now, entries);
  settle(entries, now);
  return entries;
}

// A write to a group, whose outcome was not known, has been done since: else it would look like the owner's.
bool Enforcer::take_up(const cgroup::FoundWorkload& group, const cgroup::Value& current, double now) {
  const Key key(group.identity.id, attribute_of(current));
  if (!attempts_.contains(key) || refused_.contains(key)) return false;
  const auto original = writer_.original(group, key.second);
  if (!original || writer_.written(group, key.second) != current) return false;
  attempts_.erase(key);
  holdings_.of(key.second).emplace(key.first, make_held(group.cgroup->id(), current, *original, now));
  return true;
}

// Of a value that berth holds: compares it with the present one.
void Enforcer::judge_value(const cgroup::FoundWorkload& target, const cgroup::Value& current,
                           config::ForeignWriter on_foreign, double now, std::vector<LogEntry>& entries) {
  const std::string& id = target.identity.id;
  const Attribute attribute = attribute_of(current);
  auto& values = holdings_.of(attribute);
  Held& held = values.at(id);
  if (current == held.value) {
    held.ticks_foreign = 0;
    return;
  }
  if (!target.cgroup->is_current()) return;  // gone while it was read
  LogEntry entry = blank_entry(now, "foreign", id, attribute, "foreign-writer");
  entry.old_value = cgroup::to_text(held.value);
  entry.new_value = cgroup::to_text(current);
  switch (writer_.drift(target, current)) {
    case cgroup::Drift::none:
      held.ticks_foreign = 0;
      if (writer_.written(target, attribute) == current) {
        // A write whose outcome was not known has been done since.
        held.value = current;
        held.changed_at = now;
        attempts_.erase({id, attribute});
      } else if (!writer_.original(target, attribute)) {
        // The value was as wanted when berth came, so it was never written, and now it differs. The next
        // plan decides afresh.
        values.erase(id);
      }
      break;
    case cgroup::Drift::undone:
      entry.reason = attribute == Attribute::cpu_burst
                         ? "a write to cpu.max changed the burst, as old kernels do"
                         : "systemd reloaded its units and lost the value that berth had set";
      write_again(target, attribute, std::move(entry), entries);
      break;
    case cgroup::Drift::foreign:
      if (attribute == Attribute::cpu_idle && cgroup::is_weighed_by_kubelet(id) &&
          model::may_favour_itself(target.ground, model::Word::name)) {
        entry.reason = "kubelet wrote the weight, as it does again and again";
        write_again(target, attribute, std::move(entry), entries);
        break;
      }
      read_again_(id);  // so that the next tick judges the value that is there then
      if (is_set_up(target, attribute, held) && writer_.disown(id, attribute)) {
        settle_ = true;
        values.erase(id);
        break;
      }
      if (++held.ticks_foreign < (target.systemd_unit.empty() ? 1 : kTicksUntilForeignUnit)) break;
      found_foreign(target, attribute, on_foreign, std::move(entry), entries);
      break;
  }
}

void Enforcer::take_up_again(const Observer::Readings& readings, double now, std::vector<LogEntry>& entries) {
  for (auto it = left_alone_.begin(); it != left_alone_.end();) {
    const auto& [id, left_alone] = *it;
    const auto reading = readings.find(id);
    if (!left_alone.held || reading == readings.end() || !reading->second.settings_known ||
        !is_as_held(reading->second, left_alone.attribute, *left_alone.held)) {
      ++it;
      continue;
    }
    LogEntry entry = blank_entry(now, "foreign", id, left_alone.attribute, "foreign-writer");
    entry.new_value = cgroup::to_text(left_alone.held->value);
    entry.reason = "the value that berth wrote is back: the workload is managed again";
    entry.result = "applied";
    entries.push_back(std::move(entry));
    holdings_.of(left_alone.attribute).insert_or_assign(id, *left_alone.held);
    it = left_alone_.erase(it);
  }
}

void Enforcer::write_again(const cgroup::FoundWorkload& target, Attribute attribute, LogEntry entry,
                           std::vector<LogEntry>& entries) {
  const std::string& id = target.identity.id;
  Held& held = holdings_.of(attribute).at(id);
  const auto set = writer_.set(target, held.value);
  read_again_(id);
  if (!set) {
    fail(target, attribute, set.error(), std::move(entry), entries);
    return;
  }
  held.ticks_foreign = 0;
  if (!worth_saying(++held.reasserted)) return;
  entry.reason += fmt::format("; berth wrote it again ({} times so far)", held.reasserted);
  std::swap(entry.old_value, entry.new_value);
  entry.result = "applied";
  entries.push_back(std::move(entry));
}

void Enforcer::found_foreign(const cgroup::FoundWorkload& target, Attribute attribute,
                             config::ForeignWriter on_foreign, LogEntry entry,
                             std::vector<LogEntry>& entries) {
  const std::string id = target.identity.id;
  const std::string what =
      fmt::format("another program changed {} to \"{}\" after berth had set it to \"{}\"", entry.attribute,
                  entry.new_value, entry.old_value);
  const bool lifted = holdings_.of(attribute).at(id).cause == model::HeldCause::lifted;
  const bool group = (attribute == Attribute::cpu_idle && !is_users_best_effort(target)) ||
                     (attribute == Attribute::cpus && is_other(id));
  const bool left = group && on_foreign != config::ForeignWriter::reassert;
  if (lifted || left || attribute == Attribute::cpu_burst) {
    // No policy needs these, so the owner need not give up the pin for another one.
    entry.reason =
        what + "; that is left alone until the workload restarts, a reload, or enforcing begins again";
    entry.result = "left";
    const double now = entry.time;
    entries.push_back(std::move(entry));
    cannot_hold(target, attribute, now, what, true, entries);
    settle_ = true;
    return;
  }
  // The user may have written that, to be left alone.
  const bool of_a_user = is_users_best_effort(target);
  std::uint32_t written_again = holdings_.of(attribute).at(id).reasserted;
  if (of_a_user && attribute == Attribute::cpus) {
    // Another group of the user confines it instead, so all of its groups count together.
    Offence& offence = offences_[target.confined_at];
    written_again = offence.writes++;
    offence.last = entry.time;
  }
  if (of_a_user && written_again >= kMostReasserted) {
    entry.reason = fmt::format("{}, again after berth wrote it {} times", what, kMostReasserted);
    entry.result = "failed";
    const double now = entry.time;
    const std::string why = entry.reason;
    entries.push_back(std::move(entry));
    cannot_hold(target, attribute, now, why, true, entries);
    return;
  }
  if (of_a_user || on_foreign == config::ForeignWriter::reassert) {
    entry.reason = what;
    write_again(target, attribute, std::move(entry), entries);
    return;
  }
  const bool alarm = on_foreign == config::ForeignWriter::alarm;
  auto& values = holdings_.of(attribute);
  LeftAlone left_alone{target.cgroup->id(),
                       alarm ? LeftAlone::Cause::alarm : LeftAlone::Cause::foreign_writer,
                       what,
                       attribute,
                       {}};
  entry.reason = what + "; the workload is left alone until it restarts or enforcing begins again";
  entry.result = "left";
  if (alarm) {
    // The record stays: if the value comes back, berth continues with it.
    left_alone.held = values.at(id);
    left_alone.held->ticks_foreign = 0;
    entry.reason = what + "; the workload is left alone until berth's value is back or it restarts";
    entry.error = what;
  } else if (const auto disowned = writer_.disown(id, attribute); !disowned) {
    entry.error = disowned.error().message();
  }
  settle_ = true;
  values.erase(id);
  const double now = entry.time;
  entries.push_back(std::move(entry));
  leave_alone(id, std::move(left_alone), now, entries);
}

}  // namespace berth::daemon
