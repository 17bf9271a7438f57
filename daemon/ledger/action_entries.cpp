// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/action_entries.h"

#include "daemon/ledger/held.h"
#include "model/json.h"

#include <utility>
#include <variant>

namespace berth::daemon {

namespace {

// The present value of the attribute that an action changes; nullopt where it is not known.
std::optional<cgroup::Value> value_now(const cgroup::Sampler::Readings& readings,
                                       const model::Action& action) {
  const auto attribute = action.attribute();
  if (!attribute) return std::nullopt;
  const auto reading = readings.find(*action.workload());
  if (reading == readings.end() || !reading->second.settings_known) return std::nullopt;
  return reading->second.value(*attribute);
}

std::string text_of(const std::optional<cgroup::Value>& value) {
  return value ? cgroup::to_text(*value) : std::string();
}

// The snapshot has a group's priority by its owner if that is a low one.
LogEntry observed_priority(const model::Action& action, double time, const model::Snapshot& snapshot,
                           const model::Standing& standing) {
  const auto* group = find_group(snapshot, *action.workload());
  std::optional<cgroup::Value> now;
  if (group != nullptr && group->owner) now = cgroup::value_of(*group->owner, std::nullopt);
  LogEntry entry = entry_of(action, time, "observe", now);
  entry.result = "observed";
  entry.old_value = text_of(now);
  const auto held = standing.groups.find(*action.workload());
  if (held != standing.groups.end())
    entry.old_value = cgroup::to_text(cgroup::value_of(held->second.value, now));
  return entry;
}

}  // namespace

LogEntry entry_of(const model::Action& action, double time, const char* mode,
                  const std::optional<cgroup::Value>& original) {
  LogEntry entry;
  entry.time = time;
  entry.decision = action.decision;
  entry.mode = mode;
  entry.kind = action.kind();
  if (const auto* workload = action.workload()) entry.workload = *workload;
  if (const auto attribute = action.attribute()) {
    entry.attribute = model::control_file(*attribute);
    const auto wanted = wanted_value(action, original);
    entry.new_value = text_of(wanted ? wanted : original);
  }
  if (const auto* eviction = std::get_if<model::Evict>(&action.what)) {
    entry.attribute = model::to_string(eviction->how);
  }
  if (const auto* advertised = std::get_if<model::Advertise>(&action.what)) {
    entry.attribute = model::to_string(advertised->resource);
    entry.new_value = model::to_string(advertised->state);
  }
  entry.policy = action.policy;
  entry.reason = action.reason;
  return entry;
}

std::vector<LogEntry> observed_entries(const model::Plan& plan, const model::Snapshot& snapshot,
                                       const cgroup::Sampler::Readings& readings,
                                       const model::Standing& standing) {
  std::vector<LogEntry> entries;
  for (const auto& action : plan.actions) {
    if (action.attribute() == model::Attribute::cpu_idle) {
      entries.push_back(observed_priority(action, plan.time, snapshot, standing));
      continue;
    }
    const auto now = value_now(readings, action);
    LogEntry entry = entry_of(action, plan.time, "observe", now);
    entry.result = "observed";
    entry.old_value = text_of(now);
    const auto attribute = action.attribute();
    const auto* workload = attribute ? find_workload(snapshot, *action.workload()) : nullptr;
    if (const auto* held = workload != nullptr ? find_held(standing, *workload, *attribute) : nullptr)
      entry.old_value = cgroup::to_text(cgroup::value_of(held->value, now));
    if (const auto* other =
            attribute && workload == nullptr ? find_other(snapshot, *action.workload()) : nullptr)
      entry.old_value = other->held ? other->held->to_string() : "";
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<std::string> changed_pins(const std::vector<LogEntry>& entries) {
  std::vector<std::string> changed;
  for (const LogEntry& entry : entries) {
    if (entry.attribute == model::control_file(model::Attribute::cpus) && entry.result == "applied")
      changed.push_back(entry.workload);
  }
  return changed;
}

}  // namespace berth::daemon
