// SPDX-License-Identifier: Apache-2.0
#include "model/attribute.h"

#include "model/workload.h"

#include <algorithm>
#include <type_traits>

#include <fmt/core.h>

namespace berth::model {

namespace {

template <Attribute kAttribute, typename T>
constexpr bool kIsAt =
    std::is_same_v<std::variant_alternative_t<static_cast<std::size_t>(kAttribute), AttributeValue>, T>;
static_assert(kIsAt<Attribute::cpus, CpuSet> && kIsAt<Attribute::cpu_quota, CpuQuota> &&
              kIsAt<Attribute::memory_high, MemoryHigh> && kIsAt<Attribute::memory_nodes, MemoryNodes> &&
              kIsAt<Attribute::cpu_idle, IdlePriority>);

constexpr std::array kRows{
    AttributeRow{Attribute::cpus, "cpuset.cpus", "cpuset", "pin", "unpin", "cpus"},
    AttributeRow{Attribute::cpu_quota, "cpu.max", "cpu", "set-cpu-quota", "set-cpu-quota", "cpu_quota"},
    AttributeRow{Attribute::memory_high, "memory.high", "memory", "set-memory-high", "set-memory-high",
                 "memory_high_bytes"},
    AttributeRow{Attribute::memory_nodes, "cpuset.mems", "cpuset", "set-memory-nodes", "set-memory-nodes",
                 "nodes"},
    AttributeRow{Attribute::cpu_idle, "cpu.idle", "cpu", "set-cpu-idle", "set-cpu-idle", "idle"}};
static_assert(kRows.size() == kAttributes.size());
static_assert(std::ranges::is_sorted(kRows, {}, &AttributeRow::attribute));

}  // namespace

const AttributeRow& row_of(Attribute attribute) { return kRows.at(static_cast<std::size_t>(attribute)); }

std::optional<Attribute> attribute_of(std::string_view control_file) {
  for (const AttributeRow& row : kRows) {
    if (control_file == row.control_file) return row.attribute;
  }
  return std::nullopt;
}

std::string to_text(const AttributeValue& value) {
  struct Text {
    std::string operator()(const CpuSet& cpus) const { return cpus.to_string(); }
    std::string operator()(const CpuQuota& quota) const {
      return quota.cores ? fmt::format("{}", *quota.cores) : "none";
    }
    std::string operator()(const MemoryHigh& limit) const {
      return limit.bytes ? fmt::format("{}", *limit.bytes) : "none";
    }
    std::string operator()(const MemoryNodes& bound) const { return bound.nodes.to_string(); }
    std::string operator()(const IdlePriority& priority) const { return priority.idle ? "idle" : "none"; }
  };
  return std::visit(Text{}, value);
}

AttributeValue value_of(const Workload& workload, Attribute attribute) {
  switch (attribute) {
    case Attribute::cpus:
      return workload.cpus;
    case Attribute::cpu_quota:
      return CpuQuota{workload.cpu_quota_cores};
    case Attribute::memory_nodes:
      return MemoryNodes{workload.memory_nodes};
    case Attribute::cpu_idle:
      return IdlePriority{workload.cpu_idle};
    case Attribute::memory_high:
      break;
  }
  return MemoryHigh{workload.memory_high_bytes};
}

}  // namespace berth::model
