// SPDX-License-Identifier: Apache-2.0
// Small snapshot documents with one thing in them, and the parser's answers to them.
#pragma once

#include "model/json.h"

#include <string>

namespace berth::model::testing {

// Cores 0..3, vCPU c on core c mod 4, one GPU "g0".
inline std::string topology_document() {
  std::string cpus;
  for (int cpu = 0; cpu < 8; ++cpu)
    cpus += (cpu == 0 ? "" : ",") + std::string("{\"cpu\":") + std::to_string(cpu) +
            ",\"core\":" + std::to_string(cpu % 4) + ",\"llc\":0,\"numa\":0,\"socket\":0}";
  return "{\"cpus\":[" + cpus + R"(],"gpus":[{"id":"g0"}]})";
}

// `workloads` without its brackets; `more` members, each with a leading comma.
inline std::string snapshot_document(const std::string& workloads, const std::string& more = "") {
  return R"({"schema":"berth.snapshot/1","topology":)" + topology_document() + R"(,"workloads":[)" +
         workloads + "]" + more + "}";
}

// One best-effort workload "w" with `members` more, each with a leading comma.
inline std::string workload_document(const std::string& members) {
  return snapshot_document(R"({"id":"w","class":"best-effort")" + members + "}");
}

inline std::string stages_document(const std::string& stages) {
  return snapshot_document("", R"(,"spark_apps":[{"id":"a","stages":[)" + stages + "]}]");
}

inline std::string error_of(const std::string& document) {
  const auto parsed = parse_snapshot(document);
  if (parsed) return "accepted";
  if (parsed.error().kind() != ErrorKind::invalid_input)
    return "not invalid_input: " + parsed.error().message();
  return parsed.error().message();
}

}  // namespace berth::model::testing
