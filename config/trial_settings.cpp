// SPDX-License-Identifier: Apache-2.0
#include "config/trial_settings.h"

#include "config/keys.h"
#include "config/reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace berth::config {

using model::ErrorKind;
using model::fail;

namespace {

// Tables and keys that a trial may not change.
constexpr std::array<std::string_view, 9> kFixed{"sampling.",
                                                 "log.",
                                                 "metrics.",
                                                 "spark.",
                                                 "eviction.",
                                                 "oversell.evict",
                                                 "interference.learn",
                                                 "interference.half_life",
                                                 "interference.min_samples"};

bool may_change(std::string_view key) {
  return std::none_of(kFixed.begin(), kFixed.end(), [key](auto it) { return key.starts_with(it); });
}

bool same_rule(const model::WorkloadRule& rule, model::WorkloadRule other) {
  other.origin = rule.origin;
  return rule == other;
}

}  // namespace

model::Result<Settings> trial_settings(const Settings& base, std::string_view toml, const std::string& name) {
  if (toml.size() > kMaxTrialBytes) {
    return fail(ErrorKind::invalid_input,
                fmt::format("{}: {} bytes long, more than {}", name, toml.size(), kMaxTrialBytes));
  }
  Settings settings = base;
  if (auto applied = apply_document(settings, toml, name); !applied) return fail(applied.error());
  const auto first_new = settings.rules.begin() + std::ssize(base.rules);
  for (auto rule = first_new; rule != settings.rules.end(); ++rule) {
    const bool known = std::any_of(base.rules.begin(), base.rules.end(),
                                   [&rule](const auto& it) { return same_rule(*rule, it); });
    if (known) continue;
    return fail(ErrorKind::refused,
                fmt::format("{}: a trial changes no [[workload]] table, as its sides would not measure the "
                            "same services; leave it out",
                            rule->origin));
  }
  settings.rules.erase(first_new, settings.rules.end());
  for (const Difference& difference : differences(base, settings)) {
    if (may_change(difference.key)) continue;
    return fail(ErrorKind::refused,
                fmt::format("{}: a trial does not change {}: it is {}, and must stay so in both sides", name,
                            difference.key, difference.a));
  }
  return settings;
}

std::vector<Difference> differences(Settings a, Settings b) {
  std::vector<Difference> found;
  for (const auto& spec : setting_specs()) {
    Difference difference{spec.key.name, spec.text(a), spec.text(b)};
    if (difference.a != difference.b) found.push_back(std::move(difference));
  }
  return found;
}

}  // namespace berth::config
