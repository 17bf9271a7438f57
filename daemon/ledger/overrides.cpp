// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/overrides.h"

#include "model/cpu_set.h"
#include "model/json.h"
#include "model/json_text.h"
#include "model/name.h"
#include "model/number.h"
#include "os/staged_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {

namespace {

// Enough for thousands of workloads with all settings.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{16} << 20;

}  // namespace

Overrides::Overrides(const std::filesystem::path& runtime_dir, std::optional<std::string>& warning)
    : file_(runtime_dir / "overrides.json") {
  warning = os::read_document(file_, kMostBytes, [this](const nlohmann::json& document) {
    std::optional<std::string> wrong;
    for (const auto& [workload, run] : document.items()) {
      Run read{run.at("cgroup").get<std::uint64_t>(),
               run.at("settings").get<std::map<std::string, std::string>>(),
               {}};
      read.settings.erase("borrow");  // of an earlier release
      if (read.settings.empty()) continue;
      auto parsed = config::parse_workload_settings(read.settings);
      if (!parsed) {
        wrong = fmt::format("{}: {}", workload, parsed.error().message());
        continue;
      }
      read.parsed = std::move(*parsed);
      runs_.emplace(workload, std::move(read));
    }
    return wrong;
  });
}

model::Result<void> Overrides::set(const std::string& workload, std::uint64_t cgroup_id,
                                   const std::map<std::string, std::string>& settings) {
  Run run{cgroup_id, settings, {}};
  if (const auto known = runs_.find(workload); known != runs_.end() && known->second.cgroup_id == cgroup_id) {
    run.settings.insert(known->second.settings.begin(), known->second.settings.end());
  }
  // A key that is taken back must be valid too.
  std::erase_if(run.settings, [](const auto& setting) {
    return setting.second.empty() && config::is_workload_key(setting.first);
  });
  auto parsed = config::parse_workload_settings(run.settings);
  if (!parsed) return model::fail(parsed.error());
  run.parsed = std::move(*parsed);
  if (run.settings.empty()) {
    runs_.erase(workload);
  } else {
    runs_.insert_or_assign(workload, std::move(run));
  }
  return save();
}

std::vector<std::string> Overrides::keys(const std::string& workload, std::uint64_t cgroup_id) const {
  std::vector<std::string> keys;
  const auto run = runs_.find(workload);
  if (run == runs_.end() || run->second.cgroup_id != cgroup_id) return keys;
  for (const auto& [key, value] : run->second.settings) keys.push_back(key);
  return keys;
}

void Overrides::forget(const std::string& workload, std::uint64_t living_cgroup_id) {
  const auto run = runs_.find(workload);
  if (run == runs_.end() || run->second.cgroup_id == living_cgroup_id) return;
  runs_.erase(run);
  // The file is a convenience: at the next start, the cgroup id shows that an entry is outdated.
  (void)save();
}

void Overrides::keep_if(const std::function<bool(const std::string&, std::uint64_t)>& lives) {
  const auto dropped =
      std::erase_if(runs_, [&](const auto& run) { return !lives(run.first, run.second.cgroup_id); });
  if (dropped > 0) (void)save();
}

void Overrides::apply_to_leaf(model::Workload& workload, const std::string& origin,
                              std::uint64_t cgroup_id) const {
  const auto vcpus = workload.vcpus;
  apply_of(origin, cgroup_id, workload);
  workload.vcpus = vcpus;
}

void Overrides::apply(model::Workload& workload, std::uint64_t cgroup_id) const {
  apply_of(workload.id, cgroup_id, workload);
}

void Overrides::apply_of(const std::string& id, std::uint64_t cgroup_id, model::Workload& workload) const {
  const auto run = runs_.find(id);
  if (run == runs_.end() || run->second.cgroup_id != cgroup_id) return;
  const config::WorkloadSettings& set = run->second.parsed;
  if (set.workload_class) workload.workload_class = *set.workload_class;
  if (set.service) workload.service = *set.service;
  if (set.vcpus) workload.vcpus = set.vcpus;
  if (set.isolation) workload.isolation = set.isolation;
  if (set.deadline_s) workload.deadline = workload.created + *set.deadline_s;
  if (set.priority) workload.priority = *set.priority;
  if (set.evictable) workload.evictable = *set.evictable;
  if (set.force) workload.force = *set.force;
}

model::Result<void> Overrides::save() const {
  nlohmann::json document = nlohmann::json::object();
  for (const auto& [workload, run] : runs_) {
    document[workload] = {{"cgroup", run.cgroup_id}, {"settings", run.settings}};
  }
  return os::replace_file(file_, model::json_text(document) + "\n");
}

}  // namespace berth::daemon
