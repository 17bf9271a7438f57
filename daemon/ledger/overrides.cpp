// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/overrides.h"

#include "config/units.h"
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

using model::ErrorKind;

// The limits of berth.toml's [[workload]] keys; a snapshot takes no more either.
constexpr std::size_t kMaxServiceLength = 256;
constexpr int kMaxPriority = 1'000'000;
constexpr double kMinDeadline_s = 1;
constexpr double kMaxDeadline_s = 10.0 * 365 * 86400;

constexpr std::size_t kMostQuotedBytes = 80;
// Room for thousands of workloads with all settings.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{16} << 20;

tl::unexpected<model::Error> bad(const std::string& key, const std::string& value, std::string_view takes) {
  return model::fail(ErrorKind::invalid_input, fmt::format("{}=\"{}\": must be {}", key,
                                                           model::shortened(value, kMostQuotedBytes), takes));
}

constexpr std::array<std::string_view, 6> kKeys{"class",    "service",  "vcpus",
                                                "deadline", "priority", "evictable"};

bool is_key(std::string_view key) { return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end(); }

}  // namespace

model::Result<Override> parse_override(const std::map<std::string, std::string>& settings) {
  Override result;
  for (const auto& [key, value] : settings) {
    if (key == "class") {
      auto parsed = model::parse_workload_class(value);
      if (!parsed) return bad(key, value, "latency-sensitive or best-effort");
      result.workload_class = *parsed;
    } else if (key == "service") {
      if (value.size() > kMaxServiceLength || !model::is_name(value)) {
        return bad(key, value, fmt::format("a name of 1 to {} printable characters", kMaxServiceLength));
      }
      result.service = value;
    } else if (key == "vcpus") {
      const auto number = model::to_number<int>(value);
      if (!number || *number < 1 || *number > model::kMaxCpu + 1) {
        return bad(key, value, fmt::format("an integer from 1 to {}", model::kMaxCpu + 1));
      }
      result.vcpus = number;
    } else if (key == "deadline") {
      const auto seconds = config::parse_duration_s(value);
      if (!seconds || *seconds < kMinDeadline_s || *seconds > kMaxDeadline_s) {
        return bad(key, value,
                   "a duration after the workload's creation, as in \"10min\", from 1 s to 10 years");
      }
      result.deadline_s = *seconds;
    } else if (key == "priority") {
      const auto number = model::to_number<int>(value);
      if (!number || *number < -kMaxPriority || *number > kMaxPriority) {
        return bad(key, value, fmt::format("an integer from {} to {}", -kMaxPriority, kMaxPriority));
      }
      result.priority = number;
    } else if (key == "evictable") {
      if (value != "true" && value != "false") return bad(key, value, "true or false");
      result.evictable = value == "true";
    } else {
      return model::fail(ErrorKind::invalid_input,
                         fmt::format("\"{}\": no such setting; there are {}",
                                     model::shortened(key, kMostQuotedBytes), model::joined(kKeys, ", ")));
    }
  }
  return result;
}

Overrides::Overrides(const std::filesystem::path& runtime_dir, std::optional<std::string>& warning)
    : file_(runtime_dir / "overrides.json") {
  warning = os::read_document(file_, kMostBytes, [this](const nlohmann::json& document) {
    std::optional<std::string> wrong;
    for (const auto& [workload, run] : document.items()) {
      Run read{run.at("cgroup").get<std::uint64_t>(),
               run.at("settings").get<std::map<std::string, std::string>>(),
               {}};
      auto parsed = parse_override(read.settings);
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
  std::erase_if(run.settings,
                [](const auto& setting) { return setting.second.empty() && is_key(setting.first); });
  auto parsed = parse_override(run.settings);
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
  const Override& set = run->second.parsed;
  if (set.workload_class) workload.workload_class = *set.workload_class;
  if (set.service) workload.service = *set.service;
  if (set.vcpus) workload.vcpus = set.vcpus;
  if (set.deadline_s) workload.deadline = workload.created + *set.deadline_s;
  if (set.priority) workload.priority = *set.priority;
  if (set.evictable) workload.evictable = *set.evictable;
}

model::Result<void> Overrides::save() const {
  nlohmann::json document = nlohmann::json::object();
  for (const auto& [workload, run] : runs_) {
    document[workload] = {{"cgroup", run.cgroup_id}, {"settings", run.settings}};
  }
  return os::replace_file(file_, model::json_text(document) + "\n");
}

}  // namespace berth::daemon
