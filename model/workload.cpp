// SPDX-License-Identifier: Apache-2.0
#include "model/workload.h"

#include "model/json.h"

#include <fmt/core.h>

namespace berth::model {

const char* to_string(WorkloadClass workload_class) {
  return workload_class == WorkloadClass::latency_sensitive ? "latency-sensitive" : "best-effort";
}

Result<WorkloadClass> parse_workload_class(std::string_view name) {
  for (const WorkloadClass candidate : {WorkloadClass::latency_sensitive, WorkloadClass::best_effort})
    if (name == to_string(candidate)) return candidate;
  return fail(ErrorKind::invalid_input,
              fmt::format("'{}' is not a workload class: write latency-sensitive or "
                          "best-effort",
                          name.substr(0, 40)));
}

}  // namespace berth::model
