// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/advertising.h"

#include "daemon/report/report_json.h"
#include "model/json.h"
#include "os/staged_file.h"

#include <system_error>
#include <utility>

namespace berth::daemon {

Advertising::Advertising(const std::filesystem::path& runtime_dir) : file_(runtime_dir / "state.json") {}

std::vector<LogEntry> advertising_entries(const model::Advertised& before, const model::Plan& plan,
                                          const char* mode) {
  std::vector<LogEntry> entries;
  for (const auto& action : plan.actions) {
    const auto* wanted = std::get_if<model::Advertise>(&action.what);
    if (wanted == nullptr) continue;
    const auto& said = wanted->resource == model::Resource::cpu ? before.cpu : before.memory;
    const model::SchedulingState old = said.value_or(model::AdvertisedResource()).state;
    if (old == wanted->state) continue;
    LogEntry entry;
    entry.time = plan.time;
    entry.decision = action.decision;
    entry.mode = mode;
    entry.kind = action.kind();
    entry.attribute = model::to_string(wanted->resource);
    entry.old_value = model::to_string(old);
    entry.new_value = model::to_string(wanted->state);
    entry.policy = action.policy;
    entry.reason = action.reason;
    entry.result = "applied";
    entries.push_back(std::move(entry));
  }
  return entries;
}

model::Result<void> Advertising::write(const model::Plan& plan, const model::Advertised& advertised,
                                       const std::vector<model::Departure>& departures, const char* mode,
                                       double interval_s) const {
  if (!plan.findings.oversell) return {};
  return os::replace_file(file_, state_json(plan, advertised, departures, mode, interval_s) + "\n",
                          os::Readers::everybody);
}

void Advertising::remove() const {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

}  // namespace berth::daemon
