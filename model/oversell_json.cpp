// SPDX-License-Identifier: Apache-2.0
#include "model/oversell_json.h"

#include "model/json.h"

#include <cfloat>
#include <map>
#include <string>

namespace berth::model {

namespace {

constexpr double kMaxFactor = 100;  // far above what makes sense

double read_figure(const JsonValue& value) { return value.number(-DBL_MAX, DBL_MAX); }

std::optional<AdvertisedResource> read_resource_advertised(JsonObject& object, std::string_view name) {
  const auto given = object.nullable(name);
  if (!given) return std::nullopt;
  JsonObject resource(*given);
  AdvertisedResource read;
  read.factor = resource.required("factor").number(1, kMaxFactor);
  if (const auto state = resource.optional("state")) read.state = state->choice(kStates, to_string);
  return read;
}

void write_resource_advertised(JsonWriter& out, const char* name,
                               const std::optional<AdvertisedResource>& resource) {
  if (!resource) return;
  out.key(name).begin_object().member("factor", resource->factor);
  out.member("state", to_string(resource->state)).end_object();
}

OversoldResource read_oversold(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  OversoldResource resource;
  const auto figure = [&object](std::string_view name, auto& target) {
    if (const auto given = object.nullable(name)) target = read_figure(*given);
  };
  figure("capacity", resource.capacity);
  figure("request", resource.request);
  figure("latency_sensitive_request", resource.latency_sensitive_request);
  figure("best_effort_capacity", resource.best_effort_capacity);
  if (const auto samples = object.optional("samples")) resource.samples = samples->small_integer(0, 1 << 30);
  figure("percentile", resource.percentile);
  figure("normal", resource.normal);
  figure("weighted", resource.weighted);
  figure("remembered", resource.remembered);
  figure("warming", resource.warming);
  figure("used_share", resource.used_share);
  resource.peak = read_figure(object.required("peak"));
  figure("wanted", resource.wanted);
  resource.factor = read_figure(object.required("factor"));
  resource.utilisation = read_figure(object.required("utilisation"));
  resource.state = object.required("state").choice(kStates, to_string);
  if (const auto reason = object.optional("reason")) resource.reason = reason->text();
  return resource;
}

void write_oversold(JsonWriter& out, const OversoldResource& resource) {
  out.begin_object().member("capacity", resource.capacity).member("request", resource.request);
  out.member("latency_sensitive_request", resource.latency_sensitive_request);
  out.member("best_effort_capacity", resource.best_effort_capacity).member("samples", resource.samples);
  out.member("percentile", resource.percentile).member("normal", resource.normal);
  out.member("weighted", resource.weighted).member("remembered", resource.remembered);
  out.member("warming", resource.warming).member("used_share", resource.used_share);
  out.member("peak", resource.peak).member("wanted", resource.wanted).member("factor", resource.factor);
  out.member("utilisation", resource.utilisation).member("state", to_string(resource.state));
  out.member("reason", resource.reason).end_object();
}

OversellCandidate read_candidate(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  OversellCandidate candidate;
  candidate.stage = object.required("stage").small_integer(1, 3);
  candidate.priority = object.required("priority").small_integer(-1'000'000, 1'000'000);
  candidate.cost = read_figure(object.required("cost"));
  candidate.memory_bytes = object.required("memory_bytes").bytes();
  if (const auto running = object.nullable("running_priority"))
    candidate.running_priority = read_figure(*running);
  return candidate;
}

NamedAmounts read_ages(const JsonValue& value) {
  std::map<std::string, double> ages;
  value.each_member(
      [&ages](const std::string& id, const JsonValue& age) { ages.emplace(id, read_figure(age)); });
  return ages;
}

}  // namespace

Advertised read_advertised(const JsonValue& value) {
  JsonObject object(value);
  Advertised advertised;
  advertised.cpu = read_resource_advertised(object, "cpu");
  advertised.memory = read_resource_advertised(object, "memory");
  return advertised;
}

void write_advertised(JsonWriter& out, const Advertised& advertised) {
  out.begin_object();
  write_resource_advertised(out, "cpu", advertised.cpu);
  write_resource_advertised(out, "memory", advertised.memory);
  out.end_object();
}

OversellFindings read_oversell(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  OversellFindings findings;
  if (const auto method = object.optional("method")) findings.method = method->line();
  if (const auto warming = object.optional("warming")) findings.warming = read_ages(*warming);
  findings.cpu = read_oversold(object.required("cpu"));
  findings.memory = read_oversold(object.required("memory"));
  if (const auto score = object.optional("score")) findings.score = score->fraction();
  if (const auto stop = object.optional("stop_threshold")) findings.stop_threshold = read_figure(*stop);
  if (const auto evict = object.optional("evict_threshold")) findings.evict_threshold = read_figure(*evict);
  if (const auto freeing = object.optional("freeing_bytes")) findings.freeing_bytes = freeing->bytes();
  findings.evict_count = object.required("evict_count").small_integer(0, 1 << 30);
  object.required("order").each([&findings](const JsonValue& id) { findings.order.push_back(id.name()); });
  if (const auto chosen = object.optional("chosen"))
    chosen->each([&findings](const JsonValue& id) { findings.chosen.push_back(id.name()); });
  if (const auto candidates = object.optional("candidates"))
    candidates->each_member([&findings](const std::string& id, const JsonValue& candidate) {
      findings.candidates.emplace(id, read_candidate(candidate));
    });
  if (const auto warning = object.nullable("warning")) findings.warning = warning->text();
  return findings;
}

void write_oversell(JsonWriter& out, const OversellFindings& findings) {
  out.begin_object().member("method", findings.method);
  out.key("warming").begin_object();
  for (const auto& [id, age] : findings.warming) out.member(id, age);
  out.end_object().key("cpu");
  write_oversold(out, findings.cpu);
  out.key("memory");
  write_oversold(out, findings.memory);
  out.member("score", findings.score);
  out.member("stop_threshold", findings.stop_threshold).member("evict_threshold", findings.evict_threshold);
  out.member("freeing_bytes", findings.freeing_bytes);
  out.member("evict_count", findings.evict_count).key("order").begin_array();
  for (const std::string& id : findings.order) out.value(id);
  out.end_array();
  if (!findings.chosen.empty()) {
    out.key("chosen").begin_array();
    for (const std::string& id : findings.chosen) out.value(id);
    out.end_array();
  }
  out.key("candidates").begin_object();
  for (const auto& [id, candidate] : findings.candidates) {
    out.key(id).begin_object().member("stage", candidate.stage).member("priority", candidate.priority);
    out.member("cost", candidate.cost).member("memory_bytes", candidate.memory_bytes);
    out.member("running_priority", candidate.running_priority).end_object();
  }
  out.end_object();
  if (findings.warning) out.member("warning", *findings.warning);
  out.end_object();
}

}  // namespace berth::model
