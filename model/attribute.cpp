// SPDX-License-Identifier: Apache-2.0
#include "model/attribute.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace berth::model {

namespace {

template <Attribute kAttribute, typename T>
constexpr bool kIsAt = std::is_same_v<std::variant_alternative_t<index_of(kAttribute), AttributeValue>, T>;
static_assert(kIsAt<Attribute::cpus, CpuSet> && kIsAt<Attribute::cpu_quota, CpuQuota> &&
              kIsAt<Attribute::memory_high, MemoryHigh> && kIsAt<Attribute::memory_nodes, MemoryNodes> &&
              kIsAt<Attribute::cpu_idle, IdlePriority>);

constexpr std::array kRows{
    AttributeRow{Attribute::cpus, "cpuset.cpus", "cpuset", "pin", "unpin", "cpus", false},
    AttributeRow{Attribute::cpu_quota, "cpu.max", "cpu", "set-cpu-quota", "set-cpu-quota", "cpu_quota",
                 false},
    AttributeRow{Attribute::memory_high, "memory.high", "memory", "set-memory-high", "set-memory-high",
                 "memory_high_bytes", false},
    AttributeRow{Attribute::memory_nodes, "cpuset.mems", "cpuset", "set-memory-nodes", "set-memory-nodes",
                 "nodes", true},
    AttributeRow{Attribute::cpu_idle, "cpu.idle", "cpu", "set-cpu-idle", "set-cpu-idle", "idle", true}};
static_assert(kRows.size() == kAttributes.size());
static_assert([] {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (index_of(kRows[i].attribute) != i) return false;
  }
  return true;
}());

}  // namespace

const AttributeRow& row_of(Attribute attribute) { return kRows.at(index_of(attribute)); }

AttributeValue as_kept(AttributeValue value) {
  constexpr double kPeriod_us = 100'000;
  constexpr double kLeastQuota_us = 1'000;
  constexpr std::uint64_t kPage_bytes = 4096;
  if (auto* quota = std::get_if<CpuQuota>(&value); quota != nullptr && quota->cores)
    quota->cores =
        std::max(std::round(std::max(*quota->cores, 0.0) * kPeriod_us), kLeastQuota_us) / kPeriod_us;
  if (auto* limit = std::get_if<MemoryHigh>(&value); limit != nullptr && limit->bytes)
    limit->bytes = *limit->bytes / kPage_bytes * kPage_bytes;
  return value;
}

std::optional<Attribute> attribute_of(std::string_view control_file) {
  for (const AttributeRow& row : kRows) {
    if (control_file == row.control_file) return row.attribute;
  }
  return std::nullopt;
}

}  // namespace berth::model
