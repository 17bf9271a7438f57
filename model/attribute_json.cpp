// SPDX-License-Identifier: Apache-2.0
#include "model/attribute_json.h"

#include <cfloat>

namespace berth::model {

AttributeValue read_value(const JsonValue& value, Attribute attribute) {
  switch (attribute) {
    case Attribute::cpu_quota:
      return CpuQuota{value.positive_number(DBL_MAX)};
    case Attribute::memory_high:
      return MemoryHigh{value.bytes()};
    case Attribute::memory_nodes:
      return MemoryNodes{value.cpulist()};
    case Attribute::cpu_idle:
      return value.choice(kLowPriorities, to_string);
    case Attribute::cpu_burst:
      return CpuBurst{static_cast<std::uint64_t>(value.integer(0, std::int64_t{1} << 44))};
    case Attribute::cpus:
      break;
  }
  return value.cpulist();
}

void write_value(JsonWriter& out, const AttributeValue& value) {
  struct Write {
    JsonWriter& out;
    void operator()(const CpuSet& cpus) const { out.value(cpus); }
    void operator()(const CpuQuota& quota) const { out.value(quota.cores); }
    void operator()(const MemoryHigh& limit) const { out.value(limit.bytes); }
    void operator()(const MemoryNodes& bound) const { out.value(bound.nodes); }
    void operator()(LowPriority priority) const { out.value(to_string(priority)); }
    void operator()(const CpuBurst& burst) const { out.value(burst.us); }
  };
  std::visit(Write{out}, value);
}

}  // namespace berth::model
