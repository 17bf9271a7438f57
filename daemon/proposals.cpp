// SPDX-License-Identifier: Apache-2.0
#include "daemon/proposals.h"

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

std::vector<LogEntry> Proposals::news(const model::Plan& plan, const Observer::Readings& readings) {
  std::vector<LogEntry> entries;
  decltype(last_) proposed;
  for (const auto& action : plan.actions) {
    auto entry = entry_of(action, plan.time, "observe");
    entry.result = "observed";
    const std::pair key(entry.workload, entry.kind);
    proposed[key] = entry.new_value;
    const auto last = last_.find(key);
    if (last != last_.end() && last->second == entry.new_value) continue;
    const auto reading = readings.find(entry.workload);
    if (reading != readings.end() && entry.attribute == cgroup::control_file(cgroup::Attribute::cpus)) {
      entry.old_value = reading->second.cpus.to_string();
    }
    entries.push_back(std::move(entry));
  }
  last_ = std::move(proposed);
  return entries;
}

}  // namespace berth::daemon
