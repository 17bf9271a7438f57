// SPDX-License-Identifier: Apache-2.0
#include "config/keys.h"

#include "config/units.h"
#include "config/wording.h"
#include "model/bounds.h"
#include "model/cpu_set.h"
#include "model/glob.h"
#include "model/json.h"
#include "model/name.h"
#include "model/progress.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

namespace berth::config {
namespace {

using model::Isolation;
using model::WorkloadRule;

constexpr double kDay = 86400;
constexpr double kYear = 365 * kDay;

// A function, not a lambda, selects the member of a key. So each kind of key is one piece of code, not one
// for each key.

// The value as TOML; "" for a member that is unset. `field` selects the member of the target that a key sets,
// here and below.
template <typename Target, typename Field, typename Write>
std::function<std::string(Target&)> text_by(Field field, Write write) {
  return [field, write](Target& target) -> std::string {
    auto& member = field(target);
    if constexpr (requires { member.has_value(); }) {
      return member ? write(*member) : "";
    } else {
      return write(member);
    }
  };
}

// The default is read from a default target, so that the manual cannot disagree with the program.
template <typename Target>
KeySpec<Target> make_spec(const char* name, const char* type, std::string range,
                          std::function<Refusal(Target&, const toml::node&)> set,
                          std::function<std::string(Target&)> text, std::vector<std::string> choices = {}) {
  Target defaults{};
  return {
      {name, type, text(defaults), std::move(range)}, std::move(choices), std::move(set), std::move(text)};
}

constexpr auto kPlain = [](const auto& value) { return fmt::format("{}", value); };

template <typename Target, typename Member>
KeySpec<Target> integer_key(const char* name, std::int64_t low, std::int64_t high,
                            Member& (*field)(Target&)) {
  auto set = [=](Target& target, const toml::node& node) -> Refusal {
    const auto* value = node.as_integer();
    if (value == nullptr || value->get() < low || value->get() > high) return "";
    field(target) = static_cast<int>(value->get());
    return std::nullopt;
  };
  return make_spec<Target>(name, "integer", fmt::format("{} to {}", low, high), set,
                           text_by<Target>(field, kPlain));
}

template <typename Target, typename Member>
KeySpec<Target> number_key(const char* name, double low, double high, Member& (*field)(Target&)) {
  auto set = [=](Target& target, const toml::node& node) -> Refusal {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    // Written so that NaN, which compares with nothing, is refused.
    if (!value || !(*value >= low && *value <= high)) return "";
    field(target) = *value;
    return std::nullopt;
  };
  return make_spec<Target>(name, "number", fmt::format("{} to {}", low, high), set,
                           text_by<Target>(field, kPlain));
}

template <typename Target, typename Member>
KeySpec<Target> boolean_key(const char* name, Member& (*field)(Target&)) {
  auto set = [=](Target& target, const toml::node& node) -> Refusal {
    const auto* value = node.as_boolean();
    if (value == nullptr) return "";
    field(target) = value->get();
    return std::nullopt;
  };
  return make_spec<Target>(name, "boolean", "", set, text_by<Target>(field, kPlain));
}

template <typename Target, typename Member>
KeySpec<Target> duration_key(const char* name, double low_s, double high_s, Member& (*field)(Target&)) {
  auto set = [=](Target& target, const toml::node& node) -> Refusal {
    std::optional<double> seconds = node.is_number() ? node.value<double>() : std::nullopt;
    if (const auto* text = node.as_string()) {
      auto parsed = parse_duration_s(text->get());
      if (!parsed) return parsed.error().message();
      seconds = *parsed;
    }
    if (!seconds || !(*seconds >= low_s && *seconds <= high_s)) return "";
    field(target) = *seconds;
    return std::nullopt;
  };
  return make_spec<Target>(
      name, "duration", fmt::format("{} to {}", duration_text(low_s), duration_text(high_s)), set,
      text_by<Target>(field, [](double seconds) { return '"' + duration_text(seconds) + '"'; }));
}

template <typename Target, typename Member>
KeySpec<Target> size_key(const char* name, Member& (*field)(Target&)) {
  auto set = [=](Target& target, const toml::node& node) -> Refusal {
    std::optional<std::uint64_t> bytes;
    if (const auto* value = node.as_integer()) {
      if (value->get() < 0) return "";
      bytes = static_cast<std::uint64_t>(value->get());
    } else if (const auto* text = node.as_string()) {
      auto parsed = parse_size_bytes(text->get());
      if (!parsed) return parsed.error().message();
      bytes = *parsed;
    }
    if (!bytes) return "";
    if (*bytes > model::kMaxBytes) return "larger than 8P (2^53) bytes, more than any host has";
    field(target) = *bytes;
    return std::nullopt;
  };
  return make_spec<Target>(name, "size", "", set, text_by<Target>(field, kPlain));
}

template <typename Target, typename Value, typename Member>
KeySpec<Target> choice_key(const char* name, std::vector<std::pair<std::string, Value>> allowed,
                           Member& (*field)(Target&)) {
  std::vector<std::string> names;
  names.reserve(allowed.size());
  for (const auto& [choice, value] : allowed) names.push_back(choice);
  auto as_toml = text_by<Target>(field, [allowed](const Value& wanted) {
    for (const auto& [choice, value] : allowed) {
      if (value == wanted) return quote(choice);
    }
    return std::string();
  });
  auto range = listed(names);
  auto set = [field, allowed = std::move(allowed), names](Target& target, const toml::node& node) -> Refusal {
    const auto* text = node.as_string();
    if (text == nullptr) return "";
    for (const auto& [choice, value] : allowed) {
      if (choice == text->get()) {
        field(target) = value;
        return std::nullopt;
      }
    }
    const auto meant = closest(text->get(), names);
    return meant.empty() ? "" : "did you mean " + quote(meant) + "?";
  };
  return make_spec<Target>(name, "string", std::move(range), set, std::move(as_toml), std::move(names));
}

template <typename Target, typename Member>
KeySpec<Target> cpulist_key(const char* name, Member& (*field)(Target&)) {
  auto set = [=](Target& target, const toml::node& node) -> Refusal {
    const auto* text = node.as_string();
    if (text == nullptr) return "";
    auto cpus = model::CpuSet::parse(text->get());
    if (!cpus) return cpus.error().message();
    field(target) = *cpus;
    return std::nullopt;
  };
  return make_spec<Target>(name, "cpulist", "", set, text_by<Target>(field, [](const model::CpuSet& cpus) {
                             return quote(cpus.to_string());
                           }));
}

std::vector<std::pair<std::string, Isolation>> isolations() {
  std::vector<std::pair<std::string, Isolation>> choices;
  for (const auto level : {Isolation::shared, Isolation::vcpus, Isolation::cores})
    choices.emplace_back(model::to_string(level), level);
  return choices;
}

KeySpec<Settings> metrics_listen_key() {
  auto set = [](Settings& settings, const toml::node& node) -> Refusal {
    const auto* text = node.as_string();
    if (text == nullptr) return "";
    auto address = parse_listen_address(text->get());
    if (!address) return address.error().message();
    settings.metrics_listen = *address;
    return std::nullopt;
  };
  return make_spec<Settings>("metrics.listen", "string",
                             "a loopback address with a port, or the path of a socket", set,
                             [](Settings& settings) { return quote(to_string(settings.metrics_listen)); });
}

void add_spark_specs(std::vector<KeySpec<Settings>>& specs) {
  specs.push_back(boolean_key<Settings>(
      "spark.watch", +[](Settings & s) -> auto& { return s.spark_watch; }));
  specs.push_back(duration_key<Settings>(
      "spark.interval", 0.1, 3600, +[](Settings & s) -> auto& { return s.spark_interval_s; }));
  specs.push_back(choice_key<Settings, bool>(
      "spark.leaf", {{"auto", true}, {"never", false}}, +[](Settings & s) -> auto& { return s.spark_leaf; }));
}

void add_eviction_specs(std::vector<KeySpec<Settings>>& specs) {
  using policies::Complexity;
  using policies::EvictionRank;
  using policies::ForecastRule;
  static constexpr auto eviction = [](Settings & s) -> auto& { return s.policies.eviction; };
  specs.push_back(choice_key<Settings, Complexity>(
      "eviction.complexity", {{"pooled", Complexity::pooled}, {"mean-of-ratios", Complexity::mean_of_ratios}},
      +[](Settings & s) -> auto& { return eviction(s).complexity; }));
  specs.push_back(choice_key<Settings, EvictionRank>(
      "eviction.rank",
      {{"loss-per-byte", EvictionRank::loss_per_byte},
       {"cost-per-byte", EvictionRank::cost_per_byte},
       {"cost", EvictionRank::cost}},
      +[](Settings & s) -> auto& { return eviction(s).rank; }));
  specs.push_back(number_key<Settings>(
      "eviction.alpha", 0, 1000, +[](Settings & s) -> auto& { return eviction(s).alpha; }));
  specs.push_back(number_key<Settings>(
      "eviction.beta", 0, 1, +[](Settings & s) -> auto& { return eviction(s).beta_s_per_byte; }));
  specs.push_back(number_key<Settings>(
      "eviction.gamma", 0, 1000, +[](Settings & s) -> auto& { return eviction(s).gamma; }));
  specs.push_back(choice_key<Settings, ForecastRule>(
      "eviction.forecast", {{"learned", ForecastRule::learned}, {"published", ForecastRule::published}},
      +[](Settings & s) -> auto& { return eviction(s).forecast; }));
  specs.push_back(duration_key<Settings>(
      "eviction.horizon", 10, 3600, +[](Settings & s) -> auto& { return eviction(s).horizon_s; }));
  specs.push_back(number_key<Settings>(
      "eviction.confidence", 0.5, 1, +[](Settings & s) -> auto& { return eviction(s).confidence; }));
  specs.push_back(number_key<Settings>(
      "eviction.delta", 0, 1000, +[](Settings & s) -> auto& { return eviction(s).delta_weight; }));
  specs.push_back(number_key<Settings>(
      "eviction.z", 0, 10, +[](Settings & s) -> auto& { return eviction(s).z; }));
  specs.push_back(integer_key<Settings>(
      "eviction.window", 2, 3600, +[](Settings & s) -> auto& { return eviction(s).window; }));
  specs.push_back(number_key<Settings>(
      "eviction.reserve", 0, 0.9, +[](Settings & s) -> auto& { return eviction(s).reserve; }));
  specs.push_back(number_key<Settings>(
      "eviction.psi_full", 0, 100, +[](Settings & s) -> auto& { return eviction(s).psi_full; }));
  specs.push_back(boolean_key<Settings>(
      "eviction.evict", +[](Settings & s) -> auto& { return eviction(s).evict; }));
  specs.push_back(duration_key<Settings>(
      "eviction.grace", 0, 3600, +[](Settings & s) -> auto& { return eviction(s).grace_s; }));
  specs.push_back(duration_key<Settings>(
      "eviction.hold", 0, kDay, +[](Settings & s) -> auto& { return eviction(s).hold_s; }));
}

std::vector<KeySpec<Settings>> make_setting_specs() {
  using policies::BestEffortPriority;
  using policies::InterruptPlaces;
  using policies::Others;
  using policies::Reserved;
  using policies::Search;
  using policies::Weighting;
  std::vector<KeySpec<Settings>> specs;
  specs.push_back(choice_key<Settings, Mode>(
      "mode", {{"observe", Mode::observe}, {"enforce", Mode::enforce}},
      +[](Settings & s) -> auto& { return s.mode; }));

  specs.push_back(duration_key<Settings>(
      "sampling.interval", 0.1, 3600, +[](Settings & s) -> auto& { return s.tick_s; }));
  specs.push_back(integer_key<Settings>(
      "sampling.history", 4, 3600, +[](Settings & s) -> auto& { return s.history; }));
  specs.push_back(number_key<Settings>(
      "sampling.pressure_threshold", 0, 0.9, +[](Settings & s) -> auto& { return s.pressure_threshold; }));

  specs.push_back(boolean_key<Settings>(
      "sampling.ebpf", +[](Settings & s) -> auto& { return s.ebpf; }));
  specs.push_back(number_key<Settings>(
      "sampling.max_cpu", 0.0001, 1, +[](Settings & s) -> auto& { return s.sampling_max_cpu; }));
  specs.push_back(boolean_key<Settings>(
      "sampling.blame", +[](Settings & s) -> auto& { return s.blame; }));
  specs.push_back(duration_key<Settings>(
      "sampling.blame_linger", 1, kDay, +[](Settings & s) -> auto& { return s.blame_linger_s; }));

  std::vector<std::pair<std::string, std::string>> levels;
  for (const char* level : {"trace", "debug", "info", "warning", "error", "critical"})
    levels.emplace_back(level, level);
  specs.push_back(choice_key<Settings, std::string>(
      "log.level", std::move(levels), +[](Settings & s) -> auto& { return s.log_level; }));
  specs.push_back(duration_key<Settings>(
      "log.retention", 60, 10 * kYear, +[](Settings & s) -> auto& { return s.log_retention_s; }));

  specs.push_back(metrics_listen_key());

  specs.push_back(choice_key<Settings, ForeignWriter>(
      "safety.foreign_writer",
      {{"yield", ForeignWriter::yield},
       {"reassert", ForeignWriter::reassert},
       {"alarm", ForeignWriter::alarm}},
      +[](Settings & s) -> auto& { return s.foreign_writer; }));
  specs.push_back(number_key<Settings>(
      "safety.min_change", 0, 1, +[](Settings & s) -> auto& { return s.policies.safety.min_change; }));
  specs.push_back(number_key<Settings>(
      "safety.be_quota_rise", 0.001, 1,
      +[](Settings & s) -> auto& { return s.policies.safety.be_quota_rise; }));
  specs.push_back(duration_key<Settings>(
      "safety.repin_cooldown", 0, kDay,
      +[](Settings & s) -> auto& { return s.policies.safety.repin_cooldown_s; }));

  static constexpr auto interference = [](Settings & s) -> auto& { return s.policies.interference; };
  specs.push_back(choice_key<Settings, Weighting>(
      "interference.weighting", {{"overlap", Weighting::overlap}, {"request", Weighting::request}},
      +[](Settings & s) -> auto& { return interference(s).weighting; }));
  specs.push_back(choice_key<Settings, Search>(
      "interference.search", {{"window", Search::window}, {"optimal", Search::optimal}},
      +[](Settings & s) -> auto& { return interference(s).search; }));
  specs.push_back(choice_key<Settings, model::DomainKind>(
      "interference.shared_domain", {{"llc", model::DomainKind::llc}, {"socket", model::DomainKind::socket}},
      +[](Settings & s) -> auto& { return interference(s).shared_domain; }));
  specs.push_back(integer_key<Settings>(
      "interference.window_step", 1, model::kMaxCpu + 1,
      +[](Settings & s) -> auto& { return interference(s).window_step; }));
  specs.push_back(boolean_key<Settings>(
      "interference.allow_cross_socket",
      +[](Settings & s) -> auto& { return interference(s).allow_cross_socket; }));
  specs.push_back(duration_key<Settings>(
      "interference.budget", 0.001, 10, +[](Settings & s) -> auto& { return interference(s).budget_s; }));
  specs.push_back(number_key<Settings>(
      "interference.min_gain", 0, 1, +[](Settings & s) -> auto& { return interference(s).min_gain; }));
  specs.push_back(integer_key<Settings>(
      "interference.max_moves", 0, 1000, +[](Settings & s) -> auto& { return interference(s).max_moves; }));
  specs.push_back(duration_key<Settings>(
      "interference.max_runq_latency", 0, 60,
      +[](Settings & s) -> auto& { return interference(s).max_runq_latency_s; }));
  specs.push_back(choice_key<Settings, BestEffortPriority>(
      "interference.best_effort_priority",
      {{"idle", BestEffortPriority::idle},
       {"weight", BestEffortPriority::weight},
       {"leave", BestEffortPriority::leave}},
      +[](Settings & s) -> auto& { return interference(s).best_effort_priority; }));
  specs.push_back(choice_key<Settings, Isolation>(
      "interference.isolation", isolations(),
      +[](Settings & s) -> auto& { return interference(s).isolation; }));
  specs.push_back(cpulist_key<Settings>(
      "interference.reserved_cpus", +[](Settings & s) -> auto& { return interference(s).reserved_cpus; }));
  specs.push_back(choice_key<Settings, Reserved>(
      "interference.reserved", {{"strict", Reserved::strict}, {"shared", Reserved::shared}},
      +[](Settings & s) -> auto& { return interference(s).reserved; }));
  specs.push_back(choice_key<Settings, InterruptPlaces>(
      "interference.interrupts", {{"leave", InterruptPlaces::leave}, {"move", InterruptPlaces::move}},
      +[](Settings & s) -> auto& { return interference(s).interrupts; }));
  specs.push_back(choice_key<Settings, Others>(
      "interference.others", {{"confine", Others::confine}, {"leave", Others::leave}},
      +[](Settings & s) -> auto& { return interference(s).others; }));
  specs.push_back(integer_key<Settings>(
      "interference.be_min_cpus", 1, model::kMaxCpu + 1,
      +[](Settings & s) -> auto& { return interference(s).be_min_cpus; }));
  specs.push_back(boolean_key<Settings>(
      "interference.be_avoid_siblings",
      +[](Settings & s) -> auto& { return interference(s).be_avoid_siblings; }));
  // b0 is what an instance uses alone, in cores; the slopes cannot be negative
  // (docs/decisions/interference.md).
  specs.push_back(number_key<Settings>(
      "interference.default_model.b0", 0, model::kMaxCpu + 1,
      +[](Settings & s) -> auto& { return interference(s).default_model.b0; }));
  specs.push_back(number_key<Settings>(
      "interference.default_model.k1", 0, 1000,
      +[](Settings & s) -> auto& { return interference(s).default_model.k1; }));
  specs.push_back(number_key<Settings>(
      "interference.default_model.k2", 0, 1000,
      +[](Settings & s) -> auto& { return interference(s).default_model.k2; }));
  specs.push_back(boolean_key<Settings>(
      "interference.learn", +[](Settings & s) -> auto& { return interference(s).learn; }));
  specs.push_back(duration_key<Settings>(
      "interference.half_life", 60, kYear,
      +[](Settings & s) -> auto& { return interference(s).half_life_s; }));
  specs.push_back(integer_key<Settings>(
      "interference.min_samples", 30, 1000000,
      +[](Settings & s) -> auto& { return interference(s).min_samples; }));

  static constexpr auto straggler = [](Settings & s) -> auto& { return s.policies.straggler; };
  specs.push_back(number_key<Settings>(
      "straggler.max_growth", 1, 100, +[](Settings & s) -> auto& { return straggler(s).max_growth; }));
  // The share that is left must not look pressed at once: pressure begins at 95 % of the limit.
  specs.push_back(number_key<Settings>(
      "straggler.expected_utilisation", 0.01, 0.9,
      +[](Settings & s) -> auto& { return straggler(s).expected_utilisation; }));
  specs.push_back(number_key<Settings>(
      "straggler.preempt_floor", 0.01, model::kMaxCpu + 1,
      +[](Settings & s) -> auto& { return straggler(s).preempt_floor_cores; }));
  specs.push_back(duration_key<Settings>(
      "straggler.restore_hold", 0, kDay, +[](Settings & s) -> auto& { return straggler(s).restore_hold_s; }));
  specs.push_back(number_key<Settings>(
      "straggler.restore_step", 0.01, 1, +[](Settings & s) -> auto& { return straggler(s).restore_step; }));
  add_spark_specs(specs);
  add_eviction_specs(specs);

  static constexpr auto quota = [](Settings & s) -> auto& { return s.policies.quota; };
  specs.push_back(boolean_key<Settings>(
      "quota.lift", +[](Settings & s) -> auto& { return quota(s).lift; }));
  specs.push_back(boolean_key<Settings>(
      "quota.burst", +[](Settings & s) -> auto& { return quota(s).burst; }));

  static constexpr auto oversell = [](Settings & s) -> auto& { return s.policies.oversell; };
  using policies::PeakMethod;
  specs.push_back(choice_key<Settings, PeakMethod>(
      "oversell.peak",
      {{"max", PeakMethod::max},
       {"percentile", PeakMethod::percentile},
       {"normal", PeakMethod::normal},
       {"weighted", PeakMethod::weighted}},
      +[](Settings & s) -> auto& { return oversell(s).peak; }));
  specs.push_back(duration_key<Settings>(
      "oversell.warmup", 0, kDay, +[](Settings & s) -> auto& { return oversell(s).warmup_s; }));
  specs.push_back(number_key<Settings>(
      "oversell.max_factor", 1, 10, +[](Settings & s) -> auto& { return oversell(s).max_factor; }));
  specs.push_back(number_key<Settings>(
      "oversell.factor_rise", 0.001, 1, +[](Settings & s) -> auto& { return oversell(s).factor_rise; }));
  // The ranges of these two keys keep one below the other.
  specs.push_back(number_key<Settings>(
      "oversell.stop_threshold", 0.1, 0.9,
      +[](Settings & s) -> auto& { return oversell(s).stop_threshold; }));
  specs.push_back(number_key<Settings>(
      "oversell.reserve", 0.01, 0.09, +[](Settings & s) -> auto& { return oversell(s).reserve; }));
  specs.push_back(boolean_key<Settings>(
      "oversell.evict", +[](Settings & s) -> auto& { return oversell(s).evict; }));
  specs.push_back(size_key<Settings>(
      "oversell.memory_cap", +[](Settings & s) -> auto& { return oversell(s).memory_cap_bytes; }));
  specs.push_back(integer_key<Settings>(
      "oversell.top_priority", -model::kMaxPriority, model::kMaxPriority,
      +[](Settings & s) -> auto& { return oversell(s).top_priority; }));
  specs.push_back(boolean_key<Settings>(
      "oversell.evict_highest", +[](Settings & s) -> auto& { return oversell(s).evict_highest; }));

  specs.push_back(duration_key<Settings>(
      "placement.hold", 1, kDay, +[](Settings & s) -> auto& { return s.policies.placement.hold_s; }));
  specs.push_back(boolean_key<Settings>(
      "placement.memory_nodes", +[](Settings & s) -> auto& { return s.policies.placement.memory_nodes; }));
  specs.push_back(boolean_key<Settings>(
      "placement.spread_service",
      +[](Settings & s) -> auto& { return s.policies.placement.spread_service; }));
  specs.push_back(boolean_key<Settings>(
      "placement.avoid_gpu_nodes",
      +[](Settings & s) -> auto& { return s.policies.placement.avoid_gpu_nodes; }));
  return specs;
}

KeySpec<WorkloadRule> match_key() {
  auto set = [](WorkloadRule& rule, const toml::node& node) -> Refusal {
    const auto* text = node.as_string();
    if (text == nullptr) return "";
    if (auto checked = model::check_glob(text->get()); !checked) return checked.error().message();
    rule.match = text->get();
    return std::nullopt;
  };
  return {{"match", "string", "", "required; glob over the cgroup path below the root"}, {}, set};
}

KeySpec<WorkloadRule> service_key() {
  auto set = [](WorkloadRule& rule, const toml::node& node) -> Refusal {
    const auto* text = node.as_string();
    if (text == nullptr) return "";
    if (text->get().empty()) return "it is empty";
    if (text->get().size() > model::kMaxServiceBytes)
      return fmt::format("it is longer than {} bytes", model::kMaxServiceBytes);
    if (!model::is_name(text->get()))
      return "it holds a control character, or another one that no name may hold";
    rule.service = text->get();
    return std::nullopt;
  };
  return {{"service", "string", "", ""}, {}, set};
}

// {file = "PATH"}: a table, so that other sources of progress can stand beside it.
KeySpec<WorkloadRule> progress_key() {
  auto set = [](WorkloadRule& rule, const toml::node& node) -> Refusal {
    const auto* table = node.as_table();
    if (table == nullptr) return "";
    for (const auto& [key, value] : *table) {
      if (key.str() != "file") return fmt::format("unknown key {}; known there: \"file\"", quote(key.str()));
    }
    const auto* file = table->get("file");
    if (file == nullptr) return "it names no file";
    if (!file->is_string()) return "file wants a path in quotes";
    const auto& pattern = file->as_string()->get();
    const auto checked = model::expand_progress_file(pattern, "example@1.service");
    if (!checked) return fmt::format("file {}: {}", quote(pattern), checked.error().message());
    rule.progress_file = pattern;
    return std::nullopt;
  };
  return {{"progress", "table", "", "{file = \"PATH\"}"}, {}, set};
}

// A class, or "ignored": the cgroup is no workload.
KeySpec<WorkloadRule> class_key() {
  using model::WorkloadClass;
  static constexpr const char* kIgnored = "ignored";
  std::vector<std::pair<std::string, WorkloadClass>> classes;
  for (const auto value : {WorkloadClass::latency_sensitive, WorkloadClass::best_effort}) {
    classes.emplace_back(model::to_string(value), value);
  }
  auto spec = choice_key<WorkloadRule, WorkloadClass>(
      "class", std::move(classes), +[](WorkloadRule & r) -> auto& { return r.workload_class; });
  spec.choices.emplace_back(kIgnored);
  spec.key.range = listed(spec.choices);
  spec.set = [set = spec.set](WorkloadRule& rule, const toml::node& node) -> Refusal {
    const auto* text = node.as_string();
    rule.ignored = text != nullptr && text->get() == kIgnored;
    return rule.ignored ? std::nullopt : set(rule, node);
  };
  return spec;
}

std::vector<KeySpec<WorkloadRule>> make_workload_specs() {
  std::vector<KeySpec<WorkloadRule>> specs;
  specs.push_back(match_key());
  specs.push_back(class_key());
  specs.push_back(service_key());
  specs.push_back(integer_key<WorkloadRule>(
      "vcpus", 1, model::kMaxCpu + 1, +[](WorkloadRule & r) -> auto& { return r.vcpus; }));
  specs.push_back(choice_key<WorkloadRule, Isolation>(
      "isolation", isolations(), +[](WorkloadRule & r) -> auto& { return r.isolation; }));
  specs.push_back(size_key<WorkloadRule>(
      "memory", +[](WorkloadRule & r) -> auto& { return r.memory_bytes; }));
  specs.push_back(integer_key<WorkloadRule>(
      "priority", -model::kMaxPriority, model::kMaxPriority,
      +[](WorkloadRule & r) -> auto& { return r.priority; }));
  specs.push_back(boolean_key<WorkloadRule>(
      "evictable", +[](WorkloadRule & r) -> auto& { return r.evictable; }));
  specs.push_back(boolean_key<WorkloadRule>(
      "force", +[](WorkloadRule & r) -> auto& { return r.force; }));
  specs.push_back(duration_key<WorkloadRule>(
      "deadline", model::kMinDeadline_s, model::kMaxDeadline_s,
      +[](WorkloadRule & r) -> auto& { return r.deadline_s; }));
  specs.push_back(progress_key());
  return specs;
}

template <typename Target>
std::vector<Key> keys_of(const std::vector<KeySpec<Target>>& specs) {
  std::vector<Key> keys;
  keys.reserve(specs.size());
  for (const auto& spec : specs) keys.push_back(spec.key);
  return keys;
}

}  // namespace

std::string taken_by(const Key& key, const std::vector<std::string>& choices) {
  if (!choices.empty()) return (choices.size() == 1 ? "" : "one of ") + listed(choices);
  if (key.type == "boolean") return "true or false";
  if (key.type == "cpulist") return "a cpulist in quotes, such as \"0-3,8\"";
  if (key.type == "size") return "a size, such as 1073741824 (bytes) or \"1G\"";
  if (key.type == "table") return "a table, " + key.range;
  if (key.type == "integer") return "an integer from " + key.range;
  if (key.type == "duration") return "a duration, such as 10 (seconds) or \"500ms\", from " + key.range;
  return key.type == "number" ? "a number from " + key.range : "a " + key.type;
}

std::string present_name(std::string name) {
  constexpr std::string_view kFormer = "spark.";
  if (!name.starts_with(kFormer) || find_spec(setting_specs(), name) != nullptr) return name;
  std::string present = "eviction." + name.substr(kFormer.size());
  return find_spec(setting_specs(), present) != nullptr ? present : name;
}

const char* why_gone(std::string_view name) {
  for (const std::string_view former :
       {"interference.borrow", "interference.borrow_step", "workload.borrow"}) {
    if (name == former)
      return "does nothing any more, as best-effort work has idle priority "
             "(interference.best_effort_priority); the next release refuses it";
  }
  return nullptr;
}

const std::vector<KeySpec<Settings>>& setting_specs() {
  static const std::vector<KeySpec<Settings>> specs = make_setting_specs();
  return specs;
}

const std::vector<KeySpec<WorkloadRule>>& workload_specs() {
  static const std::vector<KeySpec<WorkloadRule>> specs = make_workload_specs();
  return specs;
}

const std::vector<Key>& known_keys() {
  static const std::vector<Key> keys = keys_of(setting_specs());
  return keys;
}

const std::vector<Key>& known_workload_keys() {
  static const std::vector<Key> keys = keys_of(workload_specs());
  return keys;
}

}  // namespace berth::config
