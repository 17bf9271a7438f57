// SPDX-License-Identifier: Apache-2.0
#include "model/placement_json.h"

#include "model/json.h"
#include "model/pending_json.h"

#include <fmt/core.h>

namespace berth::model {

template <typename Io>
void fields(Io& io, Of<Io, Ranking>& ranking) {
  io.schema("berth.rank/1");
  io.required("request", ranking.request, as::object);
  fields(io, ranking.bins);
}

template <typename Io>
void fields(Io& io, Of<Io, Admission>& admission) {
  io.schema("berth.admission/1");
  io.required("host", admission.host, as::line);
  io.required("time", admission.time, as::time);
  io.required("request", admission.request, as::object);
  io.required("admitted", admission.admitted, as::flag);
  io.nullable("until", admission.until, as::time);
  io.required("reason", admission.reason, as::text);
  io.required("change", admission.change, as::list(as::text));
  fields(io, admission.bins);
  io.if_set("decision", admission.decision, as::line);
}

std::string nodes_text(const CpuSet& nodes) {
  return fmt::format("NUMA node{} {}", nodes.size() == 1 ? "" : "s", nodes.to_string());
}

Result<ParsedRequest> parse_request(std::string_view text) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  ParsedRequest parsed;
  {
    PendingWorkload& request = parsed.request;
    FieldReader io(JsonValue(context, *root));
    io.schema("berth.request/1");
    io.optional("id", request.id, as::name);
    parsed.named = !request.id.empty();
    if (!parsed.named) request.id = "request";
    service_field(io, request);
    io.optional("class", request.workload_class, as::one_of(kWorkloadClasses, to_string));
    io.nullable("vcpus", request.vcpus, as::integer{1, kMaxCpu + 1});
    io.optional("memory_request_bytes", request.memory_request_bytes, as::bytes);
    gpu_fields(io, request);
    if (!request.vcpus) io.fail("vcpus", "missing");
  }
  if (context.failed()) return fail(*context.error());
  parsed.warnings = context.take_warnings();
  return parsed;
}

std::string to_json(const Ranking& ranking) { return document_text(ranking); }

std::string to_json(const Admission& admission) { return document_text(admission, admission.wall_ahead_s); }

Result<Admission> parse_admission(std::string_view text) { return parse_document<Admission>(text); }

}  // namespace berth::model
