// SPDX-License-Identifier: Apache-2.0
#include "cgroup/systemd_owner_bus.h"
#include "model/number.h"
#include "model/text.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace berth::cgroup {

namespace {

constexpr std::uint64_t kSecondUs = 1'000'000;
constexpr std::uint64_t kPercentUs = kSecondUs / 100;  // of a CPU, in microseconds per second

std::optional<std::uint64_t> number(std::string_view text) { return model::to_number<std::uint64_t>(text); }

std::uint64_t period_of(const UnitSetting& setting) {
  return setting.quota_period_us == kInfinity ? CpuMax().period_us : setting.quota_period_us;
}

// The value of the last "KEY=" line; nullopt where there is none.
std::optional<std::string_view> assigned(std::string_view text, std::string_view key) {
  std::optional<std::string_view> value;
  while (!text.empty()) {
    const std::string_view line = model::take_line(text);
    if (line.starts_with(key) && line.substr(key.size()).starts_with('='))
      value = line.substr(key.size() + 1);
  }
  return value;
}

// The list of the last "KEY=" line; nullopt where there is none.
std::optional<model::CpuSet> assigned_list(std::string_view text, std::string_view key) {
  const auto value = assigned(text, key);
  if (!value) return std::nullopt;
  std::string list(*value);
  std::ranges::replace(list, ' ', ',');  // systemd separates runs by spaces
  auto numbers = model::CpuSet::parse(list);
  if (!numbers) return std::nullopt;
  return std::move(*numbers);
}

constexpr std::array kCpus{UnitProperty{"AllowedCPUs", "AllowedCPUs", &UnitSetting::allowed_cpus}};
constexpr std::array kQuota{
    UnitProperty{"CPUQuotaPerSecUSec", "CPUQuota", &UnitSetting::quota_us_per_second},
    UnitProperty{"CPUQuotaPeriodUSec", "CPUQuotaPeriodSec", &UnitSetting::quota_period_us}};
constexpr std::array kMemoryHigh{UnitProperty{"MemoryHigh", "MemoryHigh", &UnitSetting::memory_high_bytes}};
constexpr std::array kNodes{
    UnitProperty{"AllowedMemoryNodes", "AllowedMemoryNodes", &UnitSetting::allowed_nodes}};
constexpr std::array kWeight{UnitProperty{"CPUWeight", "CPUWeight", &UnitSetting::cpu_weight}};

// systemd 252 and 257, of Debian 12 and 13, neither read nor write cpu.max.burst (cgroup_context_apply() in
// src/core/cgroup.c writes cpu.max alone), so that berth's value stays. Later ones have CPUBurst=. They write
// it when they apply the unit's settings, and then berth takes it for another program's.
constexpr std::span<const UnitProperty> kNoProperty;

// In the order of Attribute.
constexpr std::array<std::span<const UnitProperty>, kAttributes.size()> kProperties{
    kCpus, kQuota, kMemoryHigh, kNodes, kWeight, kNoProperty};

}  // namespace

std::span<const UnitProperty> properties_of(Attribute attribute) {
  return kProperties.at(model::index_of(attribute));
}

UnitSetting setting_of(const Value& value) {
  UnitSetting setting;
  if (const auto* cpus = std::get_if<model::CpuSet>(&value)) {
    setting.allowed_cpus = *cpus;
  } else if (const auto* limit = std::get_if<CpuMax>(&value)) {
    if (limit->quota_us) setting.quota_us_per_second = *limit->quota_us * kSecondUs / limit->period_us;
    if (limit->period_us != CpuMax().period_us) setting.quota_period_us = limit->period_us;
  } else if (const auto* bound = std::get_if<MemoryNodes>(&value)) {
    setting.allowed_nodes = bound->nodes;
  } else if (const auto* priority = std::get_if<CpuIdle>(&value)) {
    if (priority->idle) {
      setting.cpu_weight = kIdleWeight;
    } else if (priority->weight != CpuIdle::kDefaultWeight) {
      setting.cpu_weight = priority->weight;
    }
  } else if (const auto* high = std::get_if<MemoryHigh>(&value)) {
    setting.memory_high_bytes = high->bytes.value_or(kInfinity);
  }
  return setting;
}

Value value_of(Attribute attribute, const UnitSetting& setting) {
  switch (attribute) {
    case Attribute::cpus:
      return setting.allowed_cpus;
    case Attribute::cpu_quota: {
      // Without a quota systemd writes its default period, whatever the unit's is.
      if (setting.quota_us_per_second == kInfinity) return CpuMax();
      const std::uint64_t quota = setting.quota_us_per_second * period_of(setting) / kSecondUs;
      return CpuMax{std::max(quota, CpuMax::kMinQuotaUs), period_of(setting)};
    }
    case Attribute::memory_nodes:
      return MemoryNodes{setting.allowed_nodes};
    case Attribute::cpu_burst:
      return unset_value(attribute);
    case Attribute::cpu_idle:
      if (setting.cpu_weight == kIdleWeight) return CpuIdle{.idle = true};
      if (setting.cpu_weight == kInfinity) return CpuIdle();
      return CpuIdle{.idle = false, .weight = setting.cpu_weight};
    case Attribute::memory_high:
      break;
  }
  if (setting.memory_high_bytes == kInfinity) return MemoryHigh();
  return memory_high(setting.memory_high_bytes);
}

std::string setting_text(Attribute attribute, const UnitSetting& setting) {
  std::string text;
  const char* separator = "";
  for (const UnitProperty& property : properties_of(attribute)) {
    text += std::exchange(separator, " ");
    if (const auto* list = std::get_if<UnitProperty::List>(&property.member)) {
      text += (setting.**list).to_string();
    } else {
      text += fmt::format("{}", setting.*std::get<UnitProperty::Number>(property.member));
    }
  }
  return text;
}

std::optional<UnitSetting> parse_setting(Attribute attribute, std::string_view text) {
  UnitSetting setting;
  for (const UnitProperty& property : properties_of(attribute)) {
    if (const auto* list = std::get_if<UnitProperty::List>(&property.member)) {
      auto numbers = model::CpuSet::parse(std::exchange(text, {}));
      if (!numbers) return std::nullopt;
      setting.** list = std::move(*numbers);
    } else {
      const auto value = number(model::take_part(text, " "));
      if (!value) return std::nullopt;
      setting.*std::get<UnitProperty::Number>(property.member) = *value;
    }
  }
  return text.empty() ? std::optional(setting) : std::nullopt;
}

std::vector<std::uint8_t> cpu_bytes(const model::CpuSet& cpus) {
  std::vector<std::uint8_t> bytes;
  for (const int cpu : cpus) {
    const auto at = static_cast<std::size_t>(cpu / 8);
    if (bytes.size() <= at) bytes.resize(at + 1);
    bytes[at] = static_cast<std::uint8_t>(bytes[at] | (1U << (cpu % 8)));
  }
  return bytes;
}

model::CpuSet cpus_of_bytes(const std::vector<std::uint8_t>& bytes) {
  model::CpuSet cpus;
  const int last = std::min(static_cast<int>(bytes.size()) * 8, model::kMaxCpu + 1);
  for (int cpu = 0; cpu < last; ++cpu) {
    if ((bytes[static_cast<std::size_t>(cpu / 8)] >> (cpu % 8) & 1U) != 0) cpus.insert(cpu);
  }
  return cpus;
}

std::vector<std::string> drop_in_names(Attribute attribute) {
  std::vector<std::string> names;
  for (const UnitProperty& property : properties_of(attribute))
    names.push_back(fmt::format("50-{}.conf", property.key));
  return names;
}

bool drop_in_holds(Attribute attribute, std::string_view text, const UnitSetting& setting) {
  switch (attribute) {
    case Attribute::cpus: {
      const auto cpus = assigned_list(text, "AllowedCPUs");
      return cpus && *cpus == setting.allowed_cpus;
    }
    case Attribute::memory_nodes: {
      const auto nodes = assigned_list(text, "AllowedMemoryNodes");
      return nodes && *nodes == setting.allowed_nodes;
    }
    case Attribute::cpu_quota: {
      if (const auto period = assigned(text, "CPUQuotaPeriodSec")) {
        // Written beside a quota only; its time span is not worth parsing.
        return period->empty() == (setting.quota_period_us == kInfinity);
      }
      const auto value = assigned(text, "CPUQuota");
      if (!value) return false;
      if (value->empty()) return setting.quota_us_per_second == kInfinity;
      const auto percents = number(value->substr(0, value->size() - 1));
      return value->ends_with('%') && percents && *percents == setting.quota_us_per_second / kPercentUs;
    }
    case Attribute::cpu_burst:
      return false;
    case Attribute::cpu_idle: {
      const auto value = assigned(text, "CPUWeight");
      if (!value) return false;
      const std::optional<std::uint64_t> weight = *value == "idle" ? kIdleWeight
                                                  : value->empty() ? kInfinity
                                                                   : number(*value);
      return weight == setting.cpu_weight;
    }
    case Attribute::memory_high:
      break;
  }
  const auto value = assigned(text, "MemoryHigh");
  if (!value) return false;
  return (*value == "infinity" ? kInfinity : number(*value).value_or(0)) == setting.memory_high_bytes;
}

CpuMax whole_percents(const CpuMax& limit) {
  if (!limit.quota_us) return CpuMax();  // systemd writes its default period then
  const std::uint64_t period = limit.period_us;
  const std::uint64_t nearest = (*limit.quota_us * 100 + period / 2) / period;
  const std::uint64_t least = (CpuMax::kMinQuotaUs * 100 + period - 1) / period;
  return {std::max(nearest, least) * kPercentUs * period / kSecondUs, period};
}

}  // namespace berth::cgroup
