// SPDX-License-Identifier: Apache-2.0
#include "cgroup/value.h"

#include "model/json.h"
#include "model/number.h"
#include "model/text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

static_assert(std::is_same_v<std::variant_alternative_t<std::size_t(Attribute::cpus), Value>, model::CpuSet>);
static_assert(std::is_same_v<std::variant_alternative_t<std::size_t(Attribute::cpu_quota), Value>, CpuMax>);
static_assert(
    std::is_same_v<std::variant_alternative_t<std::size_t(Attribute::memory_high), Value>, MemoryHigh>);
static_assert(
    std::is_same_v<std::variant_alternative_t<std::size_t(Attribute::memory_nodes), Value>, MemoryNodes>);
static_assert(std::is_same_v<std::variant_alternative_t<std::size_t(Attribute::cpu_idle), Value>, CpuIdle>);
static_assert(std::is_same_v<std::variant_alternative_t<std::size_t(Attribute::cpu_burst), Value>, CpuBurst>);

// Bounds of kernel/sched/core.c: period 1 ms to 1 s, quota from 1 ms to what its fixed-point arithmetic
// holds.
constexpr std::uint64_t kMinPeriodUs = 1'000;
constexpr std::uint64_t kMaxPeriodUs = 1'000'000;
constexpr std::uint64_t kMaxQuotaUs = (std::uint64_t{1} << 44) - 1;
// Bounds of cpu.weight (CGROUP_WEIGHT_MIN and CGROUP_WEIGHT_MAX of include/linux/cgroup.h).
constexpr std::uint64_t kMinWeight = 1;
constexpr std::uint64_t kMaxWeight = 10'000;

std::string_view trimmed(std::string_view text) { return model::trimmed(text, model::kWhiteSpace); }

// "1", "0" or "0 WEIGHT".
model::Result<CpuIdle> parse_cpu_idle(std::string_view text) {
  if (text == "1") return CpuIdle{.idle = true};
  if (text == "0") return CpuIdle{};
  const std::optional<std::uint64_t> weight =
      text.starts_with("0 ") ? model::to_number<std::uint64_t>(text.substr(2)) : std::nullopt;
  if (!weight || *weight < kMinWeight || *weight > kMaxWeight) {
    return model::fail(model::ErrorKind::invalid_input,
                       fmt::format("cpu.idle \"{}\": must be 1, 0, or 0 and a cpu.weight from {} to {}", text,
                                   kMinWeight, kMaxWeight));
  }
  return CpuIdle{.idle = false, .weight = *weight};
}

// Completes what cpu.idle says of a group that is not idle. Without the file, the group has the default.
void read_weight(const Cgroup& cgroup, CpuIdle& value) {
  if (value.idle) return;
  const auto text = cgroup.read("cpu.weight");
  const auto weight = text ? model::to_number<std::uint64_t>(trimmed(*text)) : std::nullopt;
  if (weight && *weight >= kMinWeight && *weight <= kMaxWeight) value.weight = *weight;
}

}  // namespace

Attribute attribute_of(const Value& value) { return static_cast<Attribute>(value.index()); }

std::string to_text(const Value& value) {
  if (const auto* cpus = std::get_if<model::CpuSet>(&value)) return cpus->to_string();
  if (const auto* limit = std::get_if<CpuMax>(&value)) {
    return limit->quota_us ? fmt::format("{} {}", *limit->quota_us, limit->period_us)
                           : fmt::format("max {}", limit->period_us);
  }
  if (const auto* bound = std::get_if<MemoryNodes>(&value)) return bound->nodes.to_string();
  if (const auto* priority = std::get_if<CpuIdle>(&value)) {
    if (priority->idle) return "1";
    return priority->weight == CpuIdle::kDefaultWeight ? "0" : fmt::format("0 {}", priority->weight);
  }
  if (const auto* burst = std::get_if<CpuBurst>(&value)) return fmt::format("{}", burst->us);
  const auto& limit = std::get<MemoryHigh>(value);
  return limit.bytes ? fmt::format("{}", *limit.bytes) : "max";
}

model::Result<CpuMax> parse_cpu_max(std::string_view untrimmed) {
  const std::string_view text = trimmed(untrimmed);
  const std::size_t space = text.find(' ');
  const std::string_view quota_text = text.substr(0, space);
  const std::string_view period_text =
      space == std::string_view::npos ? std::string_view() : trimmed(text.substr(space));
  const std::optional<std::uint64_t> period =
      space == std::string_view::npos ? CpuMax().period_us : model::to_number<std::uint64_t>(period_text);
  if (!period || *period < kMinPeriodUs || *period > kMaxPeriodUs) {
    return model::fail(
        model::ErrorKind::invalid_input,
        fmt::format("cpu.max \"{}\": the period must be a number of microseconds from {} to {}", text,
                    kMinPeriodUs, kMaxPeriodUs));
  }
  if (quota_text == "max") return CpuMax{std::nullopt, *period};
  const std::optional<std::uint64_t> quota = model::to_number<std::uint64_t>(quota_text);
  if (!quota || *quota < CpuMax::kMinQuotaUs || *quota > kMaxQuotaUs) {
    return model::fail(model::ErrorKind::invalid_input,
                       fmt::format("cpu.max \"{}\": the quota must be \"max\" or at least {} microseconds",
                                   text, CpuMax::kMinQuotaUs));
  }
  return CpuMax{quota, *period};
}

model::Result<Value> parse_value(Attribute attribute, std::string_view text) {
  const std::string_view value = trimmed(text);
  switch (attribute) {
    case Attribute::cpus: {
      auto cpus = model::CpuSet::parse(value);
      if (!cpus) return model::fail(cpus.error().context("cpuset.cpus"));
      return std::move(*cpus);
    }
    case Attribute::cpu_quota: {
      const auto limit = parse_cpu_max(value);
      if (!limit) return model::fail(limit.error());
      return *limit;
    }
    case Attribute::memory_nodes: {
      auto nodes = model::CpuSet::parse(value);
      if (!nodes) return model::fail(nodes.error().context("cpuset.mems"));
      return MemoryNodes{std::move(*nodes)};
    }
    case Attribute::cpu_idle: {
      const auto priority = parse_cpu_idle(value);
      if (!priority) return model::fail(priority.error());
      return *priority;
    }
    case Attribute::cpu_burst: {
      const auto us = model::to_number<std::uint64_t>(value);
      if (us && *us <= kMaxQuotaUs) return CpuBurst{*us};
      return model::fail(model::ErrorKind::invalid_input,
                         fmt::format("cpu.max.burst \"{}\": must be a number of microseconds", value));
    }
    case Attribute::memory_high:
      break;
  }
  if (value == "max") return MemoryHigh();
  const std::optional<std::uint64_t> bytes = model::to_number<std::uint64_t>(value);
  if (!bytes) {
    return model::fail(model::ErrorKind::invalid_input,
                       fmt::format("memory.high \"{}\": must be \"max\" or a number of bytes", value));
  }
  return memory_high(*bytes);
}

Value value_of(const model::AttributeValue& planned, const std::optional<Value>& original) {
  struct Kept {
    const std::optional<Value>& original;
    Value operator()(const model::CpuSet& cpus) const { return cpus; }
    Value operator()(const model::CpuQuota& quota) const {
      const auto* before = original ? std::get_if<CpuMax>(&*original) : nullptr;
      return cpu_max(quota.cores, before != nullptr ? before->period_us : CpuMax().period_us);
    }
    Value operator()(const MemoryHigh& limit) const { return memory_high(limit.bytes); }
    Value operator()(const MemoryNodes& bound) const { return bound; }
    Value operator()(model::LowPriority priority) const {
      if (priority == model::LowPriority::idle) return CpuIdle{.idle = true};
      return CpuIdle{.idle = false, .weight = CpuIdle::kLeastWeight};
    }
    Value operator()(const CpuBurst& burst) const { return burst; }
  };
  return std::visit(Kept{original}, planned);
}

Value unset_value(Attribute attribute) {
  switch (attribute) {
    case Attribute::cpus:
      return model::CpuSet();
    case Attribute::cpu_quota:
      return CpuMax();
    case Attribute::memory_nodes:
      return MemoryNodes();
    case Attribute::cpu_idle:
      return CpuIdle();
    case Attribute::cpu_burst:
      return CpuBurst();
    case Attribute::memory_high:
      break;
  }
  return MemoryHigh();
}

CpuMax cpu_max(std::optional<double> cores, std::uint64_t period_us) {
  const auto period = static_cast<double>(period_us);
  if (!cores || !(*cores < static_cast<double>(kMaxQuotaUs) / period)) return {std::nullopt, period_us};
  const double quota = std::round(std::max(*cores, 0.0) * period);
  return {std::max(static_cast<std::uint64_t>(quota), CpuMax::kMinQuotaUs), period_us};
}

MemoryHigh memory_high(std::optional<std::uint64_t> bytes) {
  if (!bytes) return {};
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  // The kernel counts no further than LONG_MAX rounded down to whole pages, and shows "max".
  const std::uint64_t largest =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / page * page;
  const std::uint64_t whole = *bytes / page * page;
  return {whole >= largest ? std::nullopt : std::optional(whole)};
}

std::optional<double> cores_of(const CpuMax& limit) {
  if (!limit.quota_us) return std::nullopt;
  const double cores = static_cast<double>(*limit.quota_us) / static_cast<double>(limit.period_us);
  return cores <= model::kMaxQuotaCores ? std::optional(cores) : std::nullopt;
}

std::optional<std::uint64_t> bytes_of(const MemoryHigh& limit) {
  return limit.bytes <= model::kMaxBytes ? limit.bytes : std::nullopt;
}

bool has_lost_weight(const Value& written, const Value& current) {
  return written == Value(CpuIdle{.idle = true}) && current == Value(CpuIdle());
}

model::Result<Value> read_value(const Cgroup& cgroup, Attribute attribute) {
  const auto text = cgroup.read(control_file(attribute));
  if (text) {
    auto value = parse_value(attribute, *text);
    if (value && attribute == Attribute::cpu_idle) read_weight(cgroup, std::get<CpuIdle>(*value));
    return value;
  }
  if (text.error().kind() == model::ErrorKind::gone && cgroup.is_current()) {
    Value value = unset_value(attribute);
    // Before Linux 5.15 there is a weight alone.
    if (auto* priority = std::get_if<CpuIdle>(&value)) read_weight(cgroup, *priority);
    return value;
  }
  return model::fail(text.error());
}

}  // namespace berth::cgroup
