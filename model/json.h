// SPDX-License-Identifier: Apache-2.0
// The JSON documents of docs/contract, strict, both ways. No JSON library type crosses this header.
#pragma once

#include "model/error.h"
#include "model/placement_findings.h"
#include "model/plan.h"
#include "model/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace berth::model {

// Documents nested deeper than this are refused.
inline constexpr int kMaxJsonDepth = 64;
// Longer documents are refused.
inline constexpr std::size_t kMaxDocumentBytes = std::size_t{256} << 20;
// Ids, services, hosts: no cgroup path is longer (PATH_MAX).
inline constexpr std::size_t kMaxNameBytes = 4096;
// Any other text.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;
// The largest amount of memory or data accepted: 8 PiB. It is above any processor's physical addresses, and
// doubles are exact up to it. A limit beyond it is no limit: write null.
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 53;
// The largest CPU quota accepted; it may exceed the host. A quota beyond it is no limit: write null.
inline constexpr double kMaxQuotaCores = 1e6;

struct HwlocSynthetic {
  std::string description;
};
struct HwlocXml {
  std::string path;
};
// A topology member that only names a topology. Another directory knows hwloc, so the caller hands the reader
// a resolver.
using TopologyReference = std::variant<HwlocSynthetic, HwlocXml>;
using TopologyResolver = std::function<Result<Topology>(const TopologyReference&)>;

struct ParsedSnapshot {
  Snapshot snapshot;
  std::vector<std::string> warnings;  // unknown members, each with its JSON path
};

// Reads a berth.snapshot/1 document. `schema`, `topology` and `workloads` are required; a workload needs `id`
// and `class`. Defaults: `service` is the workload's id, a vCPU's `core` is its number, all memory is
// available. Everything else that is absent is 0, empty or null. Workloads come back ascending by id.
// Error invalid_input: its message names the JSON path ("$.workloads[3].cpus: ..."), and line and column of
// malformed text. `resolve` may be empty: then a reference is an error.
Result<ParsedSnapshot> parse_snapshot(std::string_view text, const TopologyResolver& resolve = {});
// One line, no trailing newline, workloads ascending by id; parse_snapshot(to_json(s)) gives s back. A figure
// that a sample or vCPU lacks is left out. Bytes that are not UTF-8 become U+FFFD.
std::string to_json(const Snapshot& snapshot);
// The same, with the samples later than `since` only: epoch seconds as the document has them.
std::string to_json_since(const Snapshot& snapshot, double since);

// Reads a berth.plan/1 document; unknown members are ignored, so that an older reader shows a newer plan.
Result<Plan> parse_plan(std::string_view text);
std::string to_json(const Plan& plan);

// The "spark" findings alone, with `schema: "berth.spark/1"`, host and time of the plan; empty findings where
// the policy did not run.
std::string spark_json(const Plan& plan);

// The "topology" member alone, with `schema: "berth.topology/1"`.
std::string to_json(const Topology& topology);
Result<Topology> parse_topology(std::string_view text);

struct ParsedRequest {
  PendingWorkload request;
  bool named = false;  // an id was given
  std::vector<std::string> warnings;
};

// Reads a berth.request/1 document: the members of a pending workload. `vcpus` is required. `id` defaults to
// "request" (admission requires one), the class to latency-sensitive. Errors as of parse_snapshot.
Result<ParsedRequest> parse_request(std::string_view text);
// A berth.rank/1 document, on one line.
std::string to_json(const Ranking& ranking);
// A berth.admission/1 document, on one line.
std::string to_json(const Admission& admission);
// Reads one; unknown members are ignored.
Result<Admission> parse_admission(std::string_view text);

// Names used in JSON, configuration and on the bus.
const char* to_string(EvictionStep step);
const char* to_string(Resource resource);
const char* to_string(SchedulingState state);
const char* to_string(ModelOrigin origin);
const char* to_string(HeldCause cause);
const char* to_string(LimitMove::Kind kind);
const char* to_string(EvictionCandidate::Kind kind);
const char* to_string(EvictionTrigger trigger);
const char* to_string(WorkloadClass workload_class);
Result<WorkloadClass> parse_workload_class(std::string_view name);

}  // namespace berth::model
