// SPDX-License-Identifier: Apache-2.0
#include "config/workload_settings.h"

#include "config/keys.h"
#include "model/name.h"
#include "model/number.h"

#include <algorithm>
#include <cstdint>

#include <fmt/core.h>

namespace berth::config {

namespace {

using model::ErrorKind;

constexpr std::size_t kMostQuotedBytes = 80;

// The value as a document would have it: a number or a truth value if the key takes one, else text.
Refusal apply(const KeySpec<model::WorkloadRule>& spec, const std::string& text, model::WorkloadRule& rule) {
  if (spec.key.type == "integer") {
    if (const auto number = model::to_number<std::int64_t>(text)) return spec.set(rule, toml::value(*number));
  } else if (spec.key.type == "boolean" && (text == "true" || text == "false")) {
    return spec.set(rule, toml::value(text == "true"));
  }
  return spec.set(rule, toml::value(text));
}

}  // namespace

bool is_workload_key(std::string_view key) {
  return std::find(kWorkloadKeys.begin(), kWorkloadKeys.end(), key) != kWorkloadKeys.end();
}

model::Result<WorkloadSettings> parse_workload_settings(const std::map<std::string, std::string>& settings) {
  model::WorkloadRule rule;
  for (const auto& [key, value] : settings) {
    const auto* spec = is_workload_key(key) ? find_spec(workload_specs(), key) : nullptr;
    if (spec == nullptr) {
      return model::fail(ErrorKind::invalid_input, fmt::format("\"{}\": no such setting; there are {}",
                                                               model::shortened(key, kMostQuotedBytes),
                                                               model::joined(kWorkloadKeys, ", ")));
    }
    if (const auto refusal = apply(*spec, value, rule)) {
      return model::fail(
          ErrorKind::invalid_input,
          fmt::format("{}=\"{}\": must be {}{}{}", key, model::shortened(value, kMostQuotedBytes),
                      taken_by(spec->key, spec->choices), refusal->empty() ? "" : "; ", *refusal));
    }
  }
  if (rule.ignored) {
    return model::fail(ErrorKind::invalid_input,
                       "class=\"ignored\": only a [[workload]] rule of the configuration may say that; "
                       "must be one of latency-sensitive, best-effort");
  }
  return WorkloadSettings{.workload_class = rule.workload_class,
                          .service = std::move(rule.service),
                          .vcpus = rule.vcpus,
                          .isolation = rule.isolation,
                          .deadline_s = rule.deadline_s,
                          .priority = rule.priority,
                          .evictable = rule.evictable,
                          .force = rule.force};
}

}  // namespace berth::config
