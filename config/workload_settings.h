// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/workload.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace berth::config {

// The keys of a workload that can be set while it runs (berthctl set). Their limits are those of berth.toml's
// [[workload]] tables.
inline constexpr std::array<std::string_view, 8> kWorkloadKeys{
    "class", "service", "vcpus", "isolation", "deadline", "priority", "evictable", "force"};

bool is_workload_key(std::string_view key);

// Values of these keys. Unset members stay as they are.
struct WorkloadSettings {
  std::optional<model::WorkloadClass> workload_class;
  std::optional<std::string> service;
  std::optional<int> vcpus;
  std::optional<model::Isolation> isolation;
  std::optional<double> deadline_s;  // after the workload's creation
  std::optional<int> priority;
  std::optional<bool> evictable;
  std::optional<bool> force;

  friend bool operator==(const WorkloadSettings&, const WorkloadSettings&) = default;
};

// Parses values by key. Error invalid_input names the key and says what it takes.
model::Result<WorkloadSettings> parse_workload_settings(const std::map<std::string, std::string>& settings);

}  // namespace berth::config
