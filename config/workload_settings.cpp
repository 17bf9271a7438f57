// SPDX-License-Identifier: Apache-2.0
#include "config/workload_settings.h"

#include "config/units.h"
#include "model/bounds.h"
#include "model/cpu_set.h"
#include "model/json.h"
#include "model/name.h"
#include "model/number.h"

#include <algorithm>

#include <fmt/core.h>

namespace berth::config {

namespace {

using model::ErrorKind;

constexpr std::size_t kMostQuotedBytes = 80;

tl::unexpected<model::Error> bad(const std::string& key, const std::string& value, std::string_view takes) {
  return model::fail(ErrorKind::invalid_input, fmt::format("{}=\"{}\": must be {}", key,
                                                           model::shortened(value, kMostQuotedBytes), takes));
}

}  // namespace

bool is_workload_key(std::string_view key) {
  return std::find(kWorkloadKeys.begin(), kWorkloadKeys.end(), key) != kWorkloadKeys.end();
}

model::Result<WorkloadSettings> parse_workload_settings(const std::map<std::string, std::string>& settings) {
  WorkloadSettings result;
  for (const auto& [key, value] : settings) {
    if (key == "class") {
      auto parsed = model::parse_workload_class(value);
      if (!parsed) return bad(key, value, "latency-sensitive or best-effort");
      result.workload_class = *parsed;
    } else if (key == "service") {
      if (value.size() > model::kMaxServiceBytes || !model::is_name(value)) {
        return bad(key, value,
                   fmt::format("a name of 1 to {} printable characters", model::kMaxServiceBytes));
      }
      result.service = value;
    } else if (key == "vcpus") {
      const auto number = model::to_number<int>(value);
      if (!number || *number < 1 || *number > model::kMaxCpu + 1) {
        return bad(key, value, fmt::format("an integer from 1 to {}", model::kMaxCpu + 1));
      }
      result.vcpus = number;
    } else if (key == "deadline") {
      const auto seconds = parse_duration_s(value);
      if (!seconds || *seconds < model::kMinDeadline_s || *seconds > model::kMaxDeadline_s) {
        return bad(key, value,
                   "a duration after the workload's creation, as in \"10min\", from 1 s to 10 years");
      }
      result.deadline_s = *seconds;
    } else if (key == "priority") {
      const auto number = model::to_number<int>(value);
      if (!number || *number < -model::kMaxPriority || *number > model::kMaxPriority) {
        return bad(key, value,
                   fmt::format("an integer from {} to {}", -model::kMaxPriority, model::kMaxPriority));
      }
      result.priority = number;
    } else if (key == "evictable") {
      if (value != "true" && value != "false") return bad(key, value, "true or false");
      result.evictable = value == "true";
    } else {
      return model::fail(ErrorKind::invalid_input, fmt::format("\"{}\": no such setting; there are {}",
                                                               model::shortened(key, kMostQuotedBytes),
                                                               model::joined(kWorkloadKeys, ", ")));
    }
  }
  return result;
}

}  // namespace berth::config
