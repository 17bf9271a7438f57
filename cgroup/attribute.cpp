// SPDX-License-Identifier: Apache-2.0
#include "cgroup/attribute.h"

#include "model/cpu_set.h"
#include "model/json.h"
#include "model/number.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

constexpr std::uint64_t kDefaultPeriodUs = CpuMax().period_us;
// Bounds of kernel/sched/core.c: period 1 ms to 1 s, quota from 1 ms to what its fixed-point arithmetic
// holds.
constexpr std::uint64_t kMinPeriodUs = 1'000;
constexpr std::uint64_t kMaxPeriodUs = 1'000'000;
constexpr std::uint64_t kMinQuotaUs = 1'000;
constexpr std::uint64_t kMaxQuotaUs = (std::uint64_t{1} << 44) - 1;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string memory_text(std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  // The kernel counts no further than LONG_MAX rounded down to whole pages, and shows "max".
  const std::uint64_t largest =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / page * page;
  const std::uint64_t whole = bytes / page * page;
  return whole >= largest ? "max" : fmt::format("{}", whole);
}

}  // namespace

model::Result<CpuMax> parse_cpu_max(std::string_view untrimmed) {
  const std::string_view text = trimmed(untrimmed);
  const std::size_t space = text.find(' ');
  const std::string_view quota_text = text.substr(0, space);
  const std::string_view period_text =
      space == std::string_view::npos ? std::string_view() : trimmed(text.substr(space));
  const std::optional<std::uint64_t> period =
      space == std::string_view::npos ? kDefaultPeriodUs : model::to_number<std::uint64_t>(period_text);
  if (!period || *period < kMinPeriodUs || *period > kMaxPeriodUs) {
    return model::fail(
        model::ErrorKind::invalid_input,
        fmt::format("cpu.max \"{}\": the period must be a number of microseconds from {} to {}", text,
                    kMinPeriodUs, kMaxPeriodUs));
  }
  if (quota_text == "max") return CpuMax{std::nullopt, *period};
  const std::optional<std::uint64_t> quota = model::to_number<std::uint64_t>(quota_text);
  if (!quota || *quota < kMinQuotaUs || *quota > kMaxQuotaUs) {
    return model::fail(model::ErrorKind::invalid_input,
                       fmt::format("cpu.max \"{}\": the quota must be \"max\" or at least {} microseconds",
                                   text, kMinQuotaUs));
  }
  return CpuMax{quota, *period};
}

const char* control_file(Attribute attribute) {
  switch (attribute) {
    case Attribute::cpus:
      return "cpuset.cpus";
    case Attribute::cpu_quota:
      return "cpu.max";
    case Attribute::memory_high:
      break;
  }
  return "memory.high";
}

const char* controller(Attribute attribute) {
  switch (attribute) {
    case Attribute::cpus:
      return "cpuset";
    case Attribute::cpu_quota:
      return "cpu";
    case Attribute::memory_high:
      break;
  }
  return "memory";
}

std::optional<Attribute> attribute_of(std::string_view file) {
  for (const Attribute attribute : {Attribute::cpus, Attribute::cpu_quota, Attribute::memory_high}) {
    if (file == control_file(attribute)) return attribute;
  }
  return std::nullopt;
}

const char* unset_value(Attribute attribute) {
  switch (attribute) {
    case Attribute::cpus:
      return "";
    case Attribute::cpu_quota:
      return "max 100000";
    case Attribute::memory_high:
      break;
  }
  return "max";
}

model::Result<std::string> canonical_value(Attribute attribute, std::string_view text) {
  const std::string_view value = trimmed(text);
  switch (attribute) {
    case Attribute::cpus: {
      const auto cpus = model::CpuSet::parse(value);
      if (!cpus) return model::fail(cpus.error().context("cpuset.cpus"));
      return cpus->to_string();
    }
    case Attribute::cpu_quota: {
      const auto limit = parse_cpu_max(value);
      if (!limit) return model::fail(limit.error());
      return limit->quota_us ? fmt::format("{} {}", *limit->quota_us, limit->period_us)
                             : fmt::format("max {}", limit->period_us);
    }
    case Attribute::memory_high:
      break;
  }
  if (value == "max") return "max";
  const std::optional<std::uint64_t> bytes = model::to_number<std::uint64_t>(value);
  if (!bytes) {
    return model::fail(model::ErrorKind::invalid_input,
                       fmt::format("memory.high \"{}\": must be \"max\" or a number of bytes", value));
  }
  return memory_text(*bytes);
}

std::string cpu_quota_value(std::optional<double> cores, std::uint64_t period_us) {
  const auto period = static_cast<double>(period_us);
  if (!cores || !(*cores < static_cast<double>(kMaxQuotaUs) / period)) {
    return fmt::format("max {}", period_us);
  }
  const double quota = std::round(std::max(*cores, 0.0) * period);
  return fmt::format("{} {}", std::max(static_cast<std::uint64_t>(quota), kMinQuotaUs), period_us);
}

std::string memory_high_value(std::optional<std::uint64_t> bytes) {
  return bytes ? memory_text(*bytes) : unset_value(Attribute::memory_high);
}

std::optional<double> cores_of(std::string_view cpu_max) {
  const auto limit = parse_cpu_max(cpu_max);
  if (!limit || !limit->quota_us) return std::nullopt;
  const double cores = static_cast<double>(*limit->quota_us) / static_cast<double>(limit->period_us);
  return cores <= model::kMaxQuotaCores ? std::optional(cores) : std::nullopt;
}

model::Result<std::string> read_attribute(const Cgroup& cgroup, Attribute attribute) {
  const auto text = cgroup.read(control_file(attribute));
  if (text) return canonical_value(attribute, *text);
  if (text.error().kind() == model::ErrorKind::gone && cgroup.is_current()) return unset_value(attribute);
  return model::fail(text.error());
}

}  // namespace berth::cgroup
