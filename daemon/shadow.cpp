// SPDX-License-Identifier: Apache-2.0
#include "daemon/shadow.h"

#include "cgroup/attribute.h"

#include <type_traits>
#include <variant>

#include <fmt/format.h>

namespace berth::daemon {

namespace {

// Attribute and value of an action, as control file and text.
std::pair<std::string, std::string> change_of(const model::Action& action) {
  using cgroup::Attribute;
  return std::visit(
      [](const auto& what) -> std::pair<std::string, std::string> {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, model::PinAction>) {
          return {cgroup::control_file(Attribute::cpus), what.cpus.to_string()};
        } else if constexpr (std::is_same_v<What, model::UnpinAction>) {
          return {cgroup::control_file(Attribute::cpus), ""};
        } else if constexpr (std::is_same_v<What, model::SetCpuQuotaAction>) {
          return {cgroup::control_file(Attribute::cpu_quota),
                  what.cpu_quota_cores ? fmt::format("{} cores", *what.cpu_quota_cores) : "max"};
        } else if constexpr (std::is_same_v<What, model::SetMemoryHighAction>) {
          return {cgroup::control_file(Attribute::memory_high),
                  what.memory_high_bytes ? std::to_string(*what.memory_high_bytes) : "max"};
        } else {
          return {};
        }
      },
      action.what);
}

}  // namespace

LogEntry entry_of(const model::Action& action, double time, const char* mode) {
  auto [attribute, value] = change_of(action);
  LogEntry entry;
  entry.time = time;
  entry.decision = action.decision;
  entry.mode = mode;
  entry.kind = action.kind();
  if (const auto* workload = action.workload()) entry.workload = *workload;
  entry.attribute = std::move(attribute);
  entry.new_value = std::move(value);
  entry.policy = action.policy;
  entry.reason = action.reason;
  return entry;
}

std::vector<LogEntry> observed_entries(const model::Plan& plan, const Observer::Readings& readings) {
  std::vector<LogEntry> entries;
  for (const auto& action : plan.actions) {
    auto entry = entry_of(action, plan.time, "observe");
    entry.result = "observed";
    const auto reading = readings.find(entry.workload);
    if (reading != readings.end() && entry.attribute == cgroup::control_file(cgroup::Attribute::cpus)) {
      entry.old_value = reading->second.cpus.to_string();
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

void Shadow::follow(const Observer& observer) {
  std::erase_if(pins_,
                [&](const auto& pin) { return observer.cgroup_id(pin.first) != pin.second.cgroup_id; });
}

std::vector<LogEntry> Shadow::apply(const model::Plan& plan, const Observer& observer) {
  auto entries = observed_entries(plan, observer.readings());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& action = plan.actions[i];
    const auto held = pins_.find(entries[i].workload);
    if (held != pins_.end()) entries[i].old_value = held->second.cpus.to_string();
    if (const auto* pin = std::get_if<model::PinAction>(&action.what)) {
      const auto reading = observer.readings().find(pin->workload);
      Pin shadow;
      shadow.cgroup_id = observer.cgroup_id(pin->workload);
      shadow.cpus = pin->cpus;
      if (reading != observer.readings().end()) shadow.original = reading->second.cpus;
      shadow.pinned_at = plan.time;
      pins_.insert_or_assign(pin->workload, std::move(shadow));
    } else if (held != pins_.end() && std::holds_alternative<model::UnpinAction>(action.what)) {
      pins_.erase(held);
    }
  }
  return entries;
}

}  // namespace berth::daemon
