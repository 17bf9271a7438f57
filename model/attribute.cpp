// SPDX-License-Identifier: Apache-2.0
#include "model/attribute.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <fmt/core.h>

namespace berth::model {

namespace {

template <Attribute kAttribute, typename T>
constexpr bool kIsAt = std::is_same_v<std::variant_alternative_t<index_of(kAttribute), AttributeValue>, T>;
static_assert(kIsAt<Attribute::cpus, CpuSet> && kIsAt<Attribute::cpu_quota, CpuQuota> &&
              kIsAt<Attribute::memory_high, MemoryHigh> && kIsAt<Attribute::memory_nodes, MemoryNodes> &&
              kIsAt<Attribute::cpu_idle, LowPriority> && kIsAt<Attribute::cpu_burst, CpuBurst>);

constexpr std::array kRows{
    AttributeRow{.attribute = Attribute::cpus,
                 .control_file = "cpuset.cpus",
                 .controller = "cpuset",
                 .since = nullptr,
                 .set = "pin",
                 .give_back = "unpin",
                 .member = "cpus",
                 .name = "vCPUs",
                 .unit = "",
                 .before = "wherever it could run before",
                 .asked = false,
                 .takes = true},
    AttributeRow{.attribute = Attribute::cpu_quota,
                 .control_file = "cpu.max",
                 .controller = "cpu",
                 .since = nullptr,
                 .set = "set-cpu-quota",
                 .give_back = "set-cpu-quota",
                 .member = "cpu_quota",
                 .name = "CPU quota",
                 .unit = "",
                 .before = "the limit that it had before",
                 .asked = false,
                 .takes = true},
    AttributeRow{.attribute = Attribute::memory_high,
                 .control_file = "memory.high",
                 .controller = "memory",
                 .since = nullptr,
                 .set = "set-memory-high",
                 .give_back = "set-memory-high",
                 .member = "memory_high_bytes",
                 .name = "memory limit",
                 .unit = "",
                 .before = "the limit that it had before",
                 .asked = false,
                 .takes = true},
    AttributeRow{.attribute = Attribute::memory_nodes,
                 .control_file = "cpuset.mems",
                 .controller = "cpuset",
                 .since = nullptr,
                 .set = "set-memory-nodes",
                 .give_back = "set-memory-nodes",
                 .member = "nodes",
                 .name = "NUMA nodes",
                 .unit = "",
                 .before = "memory wherever it could be before",
                 .asked = true,
                 .takes = true},
    AttributeRow{.attribute = Attribute::cpu_idle,
                 .control_file = "cpu.idle",
                 .controller = "cpu",
                 .since = "5.15",
                 .set = "set-cpu-priority",
                 .give_back = "set-cpu-priority",
                 .member = "cpu_priority",
                 .name = "CPU priority",
                 .unit = "",
                 .before = "the priority that it had before",
                 .asked = true,
                 .takes = true},
    AttributeRow{.attribute = Attribute::cpu_burst,
                 .control_file = "cpu.max.burst",
                 .controller = "cpu",
                 .since = "5.14",
                 .set = "set-cpu-burst",
                 .give_back = "set-cpu-burst",
                 .member = "cpu_burst_us",
                 .name = "CPU burst",
                 .unit = " us",
                 .before = "the burst that it had before",
                 .asked = true,
                 .takes = false},
};
static_assert(kRows.size() == kAttributes.size());
static_assert([] {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (index_of(kRows[i].attribute) != i) return false;
  }
  return true;
}());

}  // namespace

const char* to_string(LowPriority priority) { return priority == LowPriority::idle ? "idle" : "weight"; }

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

std::string plain_text(const AttributeValue& value) {
  struct Text {
    std::string operator()(const CpuSet& cpus) const { return cpus.to_string(); }
    std::string operator()(const CpuQuota& quota) const {
      return quota.cores ? fmt::format("{}", *quota.cores) : "none";
    }
    std::string operator()(const MemoryHigh& limit) const {
      return limit.bytes ? fmt::format("{}", *limit.bytes) : "none";
    }
    std::string operator()(const MemoryNodes& bound) const { return bound.nodes.to_string(); }
    std::string operator()(LowPriority priority) const { return to_string(priority); }
    std::string operator()(const CpuBurst& burst) const { return fmt::format("{}", burst.us); }
  };
  return std::visit(Text{}, value);
}

std::string words(const AttributeValue& value) {
  struct Words {
    std::string operator()(const CpuSet& cpus) const { return "vCPUs " + cpus.to_string(); }
    std::string operator()(const CpuQuota& quota) const {
      return quota.cores ? fmt::format("{:.2f} cores", *quota.cores) : "no limit";
    }
    std::string operator()(const MemoryHigh& limit) const {
      return limit.bytes ? fmt::format("{} bytes", *limit.bytes) : "no limit";
    }
    std::string operator()(const MemoryNodes& bound) const {
      return "memory of NUMA nodes " + bound.nodes.to_string();
    }
    std::string operator()(LowPriority priority) const {
      return priority == LowPriority::idle ? "idle priority" : "the least CPU weight";
    }
    std::string operator()(const CpuBurst& burst) const {
      return fmt::format("bursts of {:.4g} ms of CPU time", static_cast<double>(burst.us) / 1000);
    }
  };
  return std::visit(Words{}, value);
}

std::optional<Attribute> attribute_of(std::string_view control_file) {
  for (const AttributeRow& row : kRows) {
    if (control_file == row.control_file) return row.attribute;
  }
  return std::nullopt;
}

}  // namespace berth::model
