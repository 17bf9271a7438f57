// SPDX-License-Identifier: Apache-2.0
#include "model/workload.h"

#include "model/json.h"

#include <fmt/core.h>

namespace berth::model {

const char* to_string(WorkloadClass workload_class) {
  return workload_class == WorkloadClass::latency_sensitive ? "latency-sensitive" : "best-effort";
}

const char* to_string(Isolation isolation) {
  switch (isolation) {
    case Isolation::shared:
      return "shared";
    case Isolation::cores:
      return "cores";
    case Isolation::vcpus:
      break;
  }
  return "vcpus";
}

Result<WorkloadClass> parse_workload_class(std::string_view name) {
  for (const WorkloadClass candidate : {WorkloadClass::latency_sensitive, WorkloadClass::best_effort})
    if (name == to_string(candidate)) return candidate;
  return fail(ErrorKind::invalid_input,
              fmt::format("'{}' is not a workload class: write latency-sensitive or "
                          "best-effort",
                          name.substr(0, 40)));
}

std::optional<AttributeValue> value_in(const Workload& workload, Attribute attribute) {
  switch (attribute) {
    case Attribute::cpus:
      if (workload.cpus.empty()) return std::nullopt;
      return workload.cpus;
    case Attribute::cpu_quota:
      return CpuQuota{workload.cpu_quota_cores};
    case Attribute::memory_nodes:
      if (workload.memory_nodes.empty()) return std::nullopt;
      return MemoryNodes{workload.memory_nodes};
    case Attribute::memory_high:
      return MemoryHigh{workload.memory_high_bytes};
    default:
      break;
  }
  const auto other = workload.others.find(attribute);
  if (other == workload.others.end()) return std::nullopt;
  return other->second;
}

}  // namespace berth::model
