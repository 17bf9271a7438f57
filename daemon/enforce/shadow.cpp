// SPDX-License-Identifier: Apache-2.0
#include "daemon/enforce/shadow.h"

#include "model/json.h"

#include <utility>
#include <variant>

namespace berth::daemon {

namespace {

// The present value of the attribute that an action changes; nullopt where it is not known.
std::optional<cgroup::Value> value_now(const Observer::Readings& readings, const model::Action& action) {
  const auto attribute = action.attribute();
  const auto* workload = action.workload();
  if (!attribute || workload == nullptr) return std::nullopt;
  const auto reading = readings.find(*workload);
  if (reading == readings.end() || !reading->second.settings_known) return std::nullopt;
  return value_of(reading->second, *attribute);
}

std::string text_of(const std::optional<cgroup::Value>& value) {
  return value ? cgroup::to_text(*value) : std::string();
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

std::vector<LogEntry> observed_entries(const model::Plan& plan, const Observer::Readings& readings) {
  std::vector<LogEntry> entries;
  for (const auto& action : plan.actions) {
    const auto now = value_now(readings, action);
    auto entry = entry_of(action, plan.time, "observe",
                          action.gives_back(model::Attribute::cpus) ? std::nullopt : now);
    entry.result = "observed";
    entry.old_value = text_of(now);
    entries.push_back(std::move(entry));
  }
  return entries;
}

void Shadow::follow(const Observer& observer) {
  for (const auto attribute : model::kAttributes) {
    std::erase_if(holdings_.of(attribute),
                  [&](const auto& held) { return observer.cgroup_id(held.first) != held.second.cgroup_id; });
  }
  std::erase_if(evictions_.by_workload,
                [&](const auto& mark) { return observer.cgroup_id(mark.first) != mark.second.cgroup_id; });
}

std::vector<LogEntry> Shadow::apply(const model::Plan& plan, const Observer& observer) {
  auto entries = observed_entries(plan, observer.readings());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& action = plan.actions[i];
    const auto attribute = action.attribute();
    if (std::holds_alternative<model::Evict>(action.what)) {
      const std::string& id = *action.workload();
      evictions_.by_workload[id] = {.cgroup_id = observer.cgroup_id(id), .evicted_at = plan.time};
    }
    if (!attribute) continue;
    const std::string& id = *action.workload();
    auto& values = holdings_.of(*attribute);
    const auto before = values.find(id);
    const bool held = before != values.end();
    const auto original = held ? before->second.original : value_now(observer.readings(), action);
    if (held) entries[i].old_value = cgroup::to_text(before->second.value);
    const auto wanted = wanted_value(action, original);
    if (!wanted) {
      entries[i].new_value = text_of(original);
      if (held) values.erase(before);
      continue;
    }
    entries[i].new_value = cgroup::to_text(*wanted);
    Held now = make_held(observer.cgroup_id(id), *wanted, original.value_or(cgroup::unset_value(*attribute)),
                         plan.time);
    if (held) now.since = before->second.since;
    if (*attribute != model::Attribute::cpus) {
      now.cause = cause_of(plan, observer.snapshot(), id, *attribute, held ? &before->second : nullptr);
    }
    values.insert_or_assign(id, std::move(now));
  }
  return entries;
}

}  // namespace berth::daemon
