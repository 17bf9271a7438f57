// SPDX-License-Identifier: Apache-2.0
#include "model/placement_json.h"

#include "model/json.h"
#include "model/pending_json.h"
#include "model/workload_json.h"

#include <cfloat>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr const char* kRequestSchema = "berth.request/1";
constexpr const char* kRankSchema = "berth.rank/1";
constexpr const char* kAdmissionSchema = "berth.admission/1";
constexpr int kMostPairs = kMostLinkedGpus * (kMostLinkedGpus - 1) / 2;

// Names that are no links are of a later version.
std::map<GpuLink, int> read_links(const JsonValue& value) {
  std::map<GpuLink, int> links;
  value.each_member([&links](const std::string& name, const JsonValue& pairs) {
    for (const GpuLink link : kGpuLinks) {
      if (name == to_string(link)) links[link] = pairs.small_integer(1, kMostPairs);
    }
  });
  return links;
}

FittingBin read_fitting(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  FittingBin bin;
  bin.host = object.required("host").line();
  bin.numa = object.required("numa").small_integer(0, kMaxCpu);
  if (const auto nodes = object.optional("numa_nodes")) bin.numa_nodes = nodes->cpulist();
  bin.cpus = object.required("cpus").cpulist();
  if (const auto gpus = object.optional("gpus"))
    gpus->each([&bin](const JsonValue& gpu) { bin.gpus.push_back(gpu.name()); });
  if (const auto links = object.optional("gpu_links")) bin.gpu_links = read_links(*links);
  bin.cpu_left_cores = object.required("cpu_left").number(-DBL_MAX, DBL_MAX);
  bin.memory_left_bytes = object.required("memory_left_bytes").bytes();
  bin.free_share = object.required("free_share").number(-DBL_MAX, DBL_MAX);
  if (const auto total = object.optional("gpus_total")) bin.gpus_total = total->small_integer(0, kMaxCpu + 1);
  if (const auto left = object.optional("gpus_left")) bin.gpus_left = left->small_integer(0, kMaxCpu + 1);
  if (const auto left = object.optional("gpu_memory_left_bytes")) bin.gpu_memory_left_bytes = left->bytes();
  const auto score = [&object](std::string_view name, std::optional<double>& target) {
    if (const auto given = object.nullable(name)) target = given->number(-DBL_MAX, DBL_MAX);
  };
  score("score_before", bin.score_before);
  score("score_after", bin.score_after);
  score("rise", bin.rise);
  if (const auto reason = object.optional("reason")) bin.reason = reason->text();
  return bin;
}

RejectedBin read_rejected(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  RejectedBin bin;
  bin.host = object.required("host").line();
  bin.numa = object.required("numa").small_integer(0, kMaxCpu);
  if (const auto nodes = object.optional("numa_nodes")) bin.numa_nodes = nodes->cpulist();
  bin.reason = object.required("reason").text();
  return bin;
}

// "fitting" and "rejected", of an object that is open.
BinRanking read_bins(JsonObject& object) {
  BinRanking bins;
  object.required("fitting").each(
      [&bins](const JsonValue& bin) { bins.fitting.push_back(read_fitting(bin)); });
  object.required("rejected").each([&bins](const JsonValue& bin) {
    bins.rejected.push_back(read_rejected(bin));
  });
  return bins;
}

// "fitting" and "rejected", into an object that is open.
void write_bins(JsonWriter& out, const BinRanking& bins) {
  out.key("fitting").begin_array();
  for (const FittingBin& bin : bins.fitting) {
    out.begin_object().member("host", bin.host).member("numa", bin.numa);
    if (!bin.numa_nodes.empty()) out.member("numa_nodes", bin.numa_nodes);
    out.member("cpus", bin.cpus);
    out.key("gpus").begin_array();
    for (const std::string& gpu : bin.gpus) out.value(gpu);
    out.end_array();
    if (!bin.gpu_links.empty()) {
      out.key("gpu_links").begin_object();
      for (const auto& [link, pairs] : bin.gpu_links) out.member(to_string(link), pairs);
      out.end_object();
    }
    out.member("cpu_left", bin.cpu_left_cores);
    out.member("memory_left_bytes", bin.memory_left_bytes).member("free_share", bin.free_share);
    out.member("gpus_total", bin.gpus_total).member("gpus_left", bin.gpus_left);
    out.member("gpu_memory_left_bytes", bin.gpu_memory_left_bytes);
    out.member("score_before", bin.score_before).member("score_after", bin.score_after);
    out.member("rise", bin.rise).member("reason", bin.reason).end_object();
  }
  out.end_array().key("rejected").begin_array();
  for (const RejectedBin& bin : bins.rejected) {
    out.begin_object().member("host", bin.host).member("numa", bin.numa);
    if (!bin.numa_nodes.empty()) out.member("numa_nodes", bin.numa_nodes);
    out.member("reason", bin.reason).end_object();
  }
  out.end_array();
}

}  // namespace

std::string nodes_text(const CpuSet& nodes) {
  return fmt::format("NUMA node{} {}", nodes.size() == 1 ? "" : "s", nodes.to_string());
}

PlacementFindings read_placement(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  PlacementFindings findings;
  object.required("pending").each_member([&findings](const std::string& id, const JsonValue& given) {
    JsonObject ranking(given);
    ranking.ignore_unknown();
    findings.pending[id] = read_bins(ranking);
  });
  return findings;
}

void write_placement(JsonWriter& out, const PlacementFindings& findings) {
  out.begin_object().key("pending").begin_object();
  for (const auto& [id, bins] : findings.pending) {
    out.key(id).begin_object();
    write_bins(out, bins);
    out.end_object();
  }
  out.end_object().end_object();
}

Result<ParsedRequest> parse_request(std::string_view text) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  const JsonValue document(context, *root);
  ParsedRequest parsed;
  PendingWorkload& request = parsed.request;
  {
    JsonObject object(document);
    object.require_schema(kRequestSchema);
    const auto id = object.optional("id");
    request.id = id ? id->name() : "request";
    parsed.named = id.has_value();
    if (const auto given = object.optional("class"))
      request.workload_class = given->choice(kWorkloadClasses, to_string);
    read_pending_members(object, request);
    if (!context.failed() && !request.vcpus) context.fail(object.path_of("vcpus"), "missing");
  }
  if (context.failed()) return fail(*context.error());
  parsed.warnings = context.take_warnings();
  return parsed;
}

std::string to_json(const Ranking& ranking) {
  JsonWriter out;
  out.begin_object().member("schema", kRankSchema).key("request").begin_object();
  write_pending_members(out, ranking.request);
  out.end_object();
  write_bins(out, ranking.bins);
  return out.end_object().take();
}

std::string to_json(const Admission& admission) {
  JsonWriter out(admission.wall_ahead_s);
  out.begin_object().member("schema", kAdmissionSchema).member("host", admission.host);
  out.time("time", admission.time).key("request").begin_object();
  write_pending_members(out, admission.request);
  out.end_object().member("admitted", admission.admitted).time("until", admission.until);
  out.member("reason", admission.reason).key("change").begin_array();
  for (const std::string& change : admission.change) out.value(change);
  out.end_array();
  write_bins(out, admission.bins);
  return out.end_object().take();
}

Result<Admission> parse_admission(std::string_view text) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  const JsonValue document(context, *root);
  Admission admission;
  {
    JsonObject object(document);
    object.ignore_unknown();
    object.require_schema(kAdmissionSchema);
    admission.host = object.required("host").line();
    admission.time = object.required("time").epoch();
    admission.request = read_pending(object.required("request"));
    admission.admitted = object.required("admitted").boolean();
    if (const auto until = object.nullable("until")) admission.until = until->epoch();
    admission.reason = object.required("reason").text();
    object.required("change").each(
        [&admission](const JsonValue& change) { admission.change.push_back(change.text()); });
    admission.bins = read_bins(object);
  }
  if (context.failed()) return fail(*context.error());
  return admission;
}

}  // namespace berth::model
