// SPDX-License-Identifier: Apache-2.0
#include "config/without_effect.h"

#include "config/trial_settings.h"
#include "model/name.h"
#include "model/workload.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace berth::config {

namespace {

using model::Isolation;
using model::WorkloadClass;
using model::WorkloadRule;

bool owns_vcpus(const WorkloadRule& rule, const Settings& settings) {
  return rule.isolation.value_or(settings.policies.interference.isolation) != Isolation::shared;
}

bool any_owns_vcpus(const Settings& settings) {
  return settings.policies.interference.isolation != Isolation::shared ||
         std::any_of(settings.rules.begin(), settings.rules.end(),
                     [&](const WorkloadRule& rule) { return owns_vcpus(rule, settings); });
}

constexpr std::string_view kNoOwner =
    "by this file no service owns vCPUs; set isolation in a rule or in [interference], or leave it out";

// What keys need to have an effect: the setting, and whether the settings have it.
struct Need {
  std::string_view setting;  // empty: services that own vCPUs, and more than this file makes these
  bool (*met)(const Settings& settings);
  std::vector<std::string_view> keys;
};

const std::vector<Need>& needs() {
  using policies::ForecastRule;
  using policies::Search;
  static const std::vector<Need> all{
      {"",
       any_owns_vcpus,
       {"interference.search", "interference.window_step", "interference.be_avoid_siblings",
        "interference.interrupts", "interference.others"}},
      {"interference.search = \"optimal\"",
       [](const Settings& s) { return s.policies.interference.search == Search::optimal; },
       {"interference.budget"}},
      {"interference.search = \"optimal\" or interference.max_runq_latency",
       [](const Settings& s) {
         return s.policies.interference.search == Search::optimal ||
                s.policies.interference.max_runq_latency_s > 0;
       },
       {"interference.min_gain", "interference.max_moves"}},
      {"sampling.ebpf = true",
       [](const Settings& s) { return s.ebpf; },
       {"interference.max_runq_latency", "sampling.blame", "sampling.blame_linger"}},
      {"interference.reserved_cpus",
       [](const Settings& s) { return !s.policies.interference.reserved_cpus.empty(); },
       {"interference.reserved"}},
      {"spark.watch = true",
       [](const Settings& s) { return s.spark_watch; },
       {"spark.interval", "spark.leaf"}},
      {"eviction.forecast = \"learned\"",
       [](const Settings& s) { return s.policies.eviction.forecast == ForecastRule::learned; },
       {"eviction.horizon", "eviction.confidence"}},
      {"eviction.forecast = \"published\"",
       [](const Settings& s) { return s.policies.eviction.forecast == ForecastRule::published; },
       {"eviction.z"}},
      {"eviction.forecast = \"published\" or eviction.delta",
       [](const Settings& s) {
         return s.policies.eviction.forecast == ForecastRule::published ||
                s.policies.eviction.delta_weight > 0;
       },
       {"eviction.window"}},
  };
  return all;
}

// The members of a rule that have no effect, on what, and what to do in place of leaving them out.
struct Idle {
  std::vector<std::string_view> members;
  std::string_view of;
  std::string_view instead = "change the class";
};

Idle idle_members(const WorkloadRule& rule, const Settings& settings) {
  std::vector<std::string_view> idle;
  const auto add = [&idle](bool given, std::string_view member) {
    if (given) idle.push_back(member);
  };
  if (rule.ignored) {
    add(rule.service.has_value(), "service");
    add(rule.vcpus.has_value(), "vcpus");
    add(rule.isolation.has_value(), "isolation");
    add(rule.memory_bytes.has_value(), "memory");
    // These two lower work whose name a user chose (cgroup::judge()).
    add(rule.priority.value_or(-1) >= 0, "priority");
    add(!rule.evictable.value_or(true), "evictable");
    add(rule.force.has_value(), "force");
    add(rule.deadline_s.has_value(), "deadline");
    add(rule.progress_file.has_value(), "progress");
    return {.members = idle, .of = "a cgroup that is ignored"};
  }
  if (rule.workload_class == WorkloadClass::best_effort) {
    add(rule.isolation.has_value(), "isolation");
    add(rule.force.has_value(), "force");
    add(rule.deadline_s.has_value(), "deadline");
    return {.members = idle, .of = "best-effort work"};
  }
  if (rule.workload_class == WorkloadClass::latency_sensitive) {
    add(rule.priority.value_or(-1) >= 0, "priority");
    if (!idle.empty()) return {.members = idle, .of = "latency-sensitive work"};
    add(rule.force.value_or(false) && !owns_vcpus(rule, settings), "force");
  }
  return {.members = idle, .of = "a service that owns no vCPUs", .instead = "set isolation"};
}

}  // namespace

std::vector<std::string> without_effect(const Settings& settings) {
  std::vector<std::string> found;
  for (const Difference& set : differences(Settings(), settings)) {
    for (const Need& need : needs()) {
      if (std::find(need.keys.begin(), need.keys.end(), set.key) == need.keys.end() || need.met(settings))
        continue;
      const std::string setting = fmt::format("{} = {}", set.key, set.b);
      found.push_back(need.setting.empty() ? fmt::format("{}: {}", setting, kNoOwner)
                                           : fmt::format("{} has no effect without {}; or leave it out",
                                                         setting, need.setting));
    }
  }
  for (const WorkloadRule& rule : settings.rules) {
    const auto [idle, of, instead] = idle_members(rule, settings);
    if (idle.empty()) continue;
    found.push_back(fmt::format("{}: {} {} no effect on {}; leave that out, or {}", rule.origin,
                                model::joined(idle, ", "), idle.size() == 1 ? "has" : "have", of, instead));
  }
  return found;
}

std::vector<std::string> remarks(const Settings& settings) {
  std::vector<std::string> found = settings.warnings;
  const auto idle = without_effect(settings);
  found.insert(found.end(), idle.begin(), idle.end());
  return found;
}

}  // namespace berth::config
