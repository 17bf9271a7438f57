// SPDX-License-Identifier: Apache-2.0
#include "model/spark_json.h"

#include "model/json.h"

#include <cfloat>

namespace berth::model {

namespace {

using Kind = EvictionCandidate::Kind;

constexpr std::array kKinds{Kind::executor, Kind::driver, Kind::other};
constexpr std::array kTriggers{EvictionTrigger::none, EvictionTrigger::need, EvictionTrigger::pressure};

double read_amount(const JsonValue& value) { return value.number(0, DBL_MAX); }
double read_figure(const JsonValue& value) { return value.number(-DBL_MAX, DBL_MAX); }
std::size_t read_count(const JsonValue& value) {
  return static_cast<std::size_t>(value.integer(0, std::int64_t{1} << 53));
}

MemoryDemand read_demand(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  MemoryDemand demand;
  demand.samples = read_count(object.required("samples"));
  demand.mean_bytes = read_amount(object.required("mean_bytes"));
  demand.sd_bytes = read_amount(object.required("sd_bytes"));
  demand.latest_bytes = object.required("latest_bytes").bytes();
  demand.slope_bytes_per_s = read_figure(object.required("slope_bytes_per_s"));
  demand.rising = object.required("rising").boolean();
  return demand;
}

void write_demand(JsonWriter& out, const MemoryDemand& demand) {
  out.begin_object().member("samples", std::uint64_t{demand.samples}).member("mean_bytes", demand.mean_bytes);
  out.member("sd_bytes", demand.sd_bytes).member("latest_bytes", demand.latest_bytes);
  out.member("slope_bytes_per_s", demand.slope_bytes_per_s).member("rising", demand.rising).end_object();
}

MemoryForecast read_forecast(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  MemoryForecast forecast;
  forecast.shape = object.required("shape").line();
  forecast.horizon_s = read_amount(object.required("horizon"));
  forecast.peak_bytes = read_amount(object.required("peak_bytes"));
  forecast.margin_bytes = read_figure(object.required("margin_bytes"));
  forecast.slope_bytes_per_s = read_figure(object.required("slope_bytes_per_s"));
  forecast.readings = read_count(object.required("readings"));
  forecast.errors = read_count(object.required("errors"));
  return forecast;
}

void write_forecast(JsonWriter& out, const MemoryForecast& forecast) {
  out.begin_object().member("shape", forecast.shape).member("horizon", forecast.horizon_s);
  out.member("peak_bytes", forecast.peak_bytes).member("margin_bytes", forecast.margin_bytes);
  out.member("slope_bytes_per_s", forecast.slope_bytes_per_s);
  out.member("readings", std::uint64_t{forecast.readings});
  out.member("errors", std::uint64_t{forecast.errors}).end_object();
}

SparkAppFigures read_app(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  SparkAppFigures app;
  app.computation_s = read_amount(object.required("computation"));
  app.transmission_bytes = read_amount(object.required("transmission"));
  app.recalculation_s = read_amount(object.required("recalculation"));
  if (const auto remaining = object.nullable("remaining")) app.remaining_s = read_amount(*remaining);
  app.cost_s = read_figure(object.required("cost"));
  if (const auto stages = object.optional("stages")) app.stages = read_count(*stages);
  if (const auto more = object.optional("stages_to_come")) app.stages_to_come = read_count(*more);
  if (const auto done = object.optional("stages_done")) app.stages_done = read_amount(*done);
  if (const auto frees = object.optional("frees_bytes")) app.frees_bytes = frees->bytes();
  if (const auto each = object.nullable("cost_per_byte")) app.cost_per_byte = read_figure(*each);
  return app;
}

EvictionCandidate read_candidate(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  EvictionCandidate candidate;
  candidate.kind = object.required("kind").choice(kKinds, to_string);
  if (const auto app = object.nullable("app")) candidate.app = app->name();
  candidate.lost_s = read_amount(object.required("lost"));
  candidate.running_s = read_amount(object.required("running"));
  candidate.cost_s = read_figure(object.required("cost"));
  candidate.frees_bytes = object.required("frees_bytes").bytes();
  if (const auto key = object.nullable("rank_key")) candidate.rank_key = read_figure(*key);
  if (const auto reason = object.optional("reason")) candidate.reason = reason->text();
  return candidate;
}

std::vector<MemoryTaken> read_taken(const JsonValue& value) {
  std::vector<MemoryTaken> list;
  value.each([&list](const JsonValue& element) {
    JsonObject object(element);
    object.ignore_unknown();
    MemoryTaken& taken = list.emplace_back();
    taken.workload = object.required("workload").name();
    taken.bytes = object.required("bytes").bytes();
    if (const auto reason = object.optional("reason")) taken.reason = reason->text();
  });
  return list;
}

void write_taken(JsonWriter& out, const std::vector<MemoryTaken>& list) {
  out.begin_array();
  for (const MemoryTaken& taken : list) {
    out.begin_object().member("workload", taken.workload).member("bytes", taken.bytes);
    out.member("reason", taken.reason).end_object();
  }
  out.end_array();
}

}  // namespace

void write_app_figures(JsonWriter& out, const SparkAppFigures& app) {
  out.begin_object().member("computation", app.computation_s).member("transmission", app.transmission_bytes);
  out.member("recalculation", app.recalculation_s).member("remaining", app.remaining_s);
  out.member("cost", app.cost_s).member("stages", std::uint64_t{app.stages});
  out.member("stages_to_come", std::uint64_t{app.stages_to_come});
  out.member("stages_done", app.stages_done).member("frees_bytes", app.frees_bytes);
  out.member("cost_per_byte", app.cost_per_byte).end_object();
}

void write_candidate(JsonWriter& out, const EvictionCandidate& candidate) {
  out.begin_object().member("kind", to_string(candidate.kind)).member("app", candidate.app);
  out.member("lost", candidate.lost_s).member("running", candidate.running_s);
  out.member("cost", candidate.cost_s).member("frees_bytes", candidate.frees_bytes);
  out.member("rank_key", candidate.rank_key).member("reason", candidate.reason).end_object();
}

SparkFindings read_spark(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  SparkFindings findings;
  if (const auto complexity = object.optional("complexity")) findings.complexity = complexity->line();
  if (const auto rank = object.optional("rank")) findings.rank = rank->line();
  if (const auto demand = object.optional("demand")) findings.demand = read_demand(*demand);
  if (const auto forecast = object.nullable("forecast")) findings.forecast = read_forecast(*forecast);
  findings.delta = read_amount(object.required("delta"));
  findings.growth_bytes = object.required("growth_bytes").bytes();
  if (const auto available = object.optional("available_bytes"))
    findings.available_bytes = available->bytes();
  if (const auto reserve = object.optional("reserve_bytes")) findings.reserve_bytes = reserve->bytes();
  if (const auto freeing = object.optional("freeing_bytes")) findings.freeing_bytes = freeing->bytes();
  findings.need_bytes = object.required("need_bytes").bytes();
  if (const auto psi = object.optional("psi_full_avg10")) findings.psi_full_avg10 = psi->number(0, 100);
  if (const auto trigger = object.optional("trigger"))
    findings.trigger = trigger->choice(kTriggers, to_string);
  if (const auto reason = object.optional("reason")) findings.reason = reason->text();
  object.required("apps").each_member(
      [&findings](const std::string& id, const JsonValue& app) { findings.apps.emplace(id, read_app(app)); });
  if (const auto candidates = object.optional("candidates")) {
    candidates->each_member([&findings](const std::string& id, const JsonValue& candidate) {
      findings.candidates.emplace(id, read_candidate(candidate));
    });
  }
  object.required("order").each([&findings](const JsonValue& id) { findings.order.push_back(id.name()); });
  if (const auto spared = object.optional("spared")) {
    spared->each_member([&findings](const std::string& id, const JsonValue& reason) {
      findings.spared.emplace(id, reason.text());
    });
  }
  if (const auto held = object.optional("held")) {
    held->each_member([&findings](const std::string& id, const JsonValue& reason) {
      findings.held.emplace(id, reason.text());
    });
  }
  if (const auto reclaim = object.optional("reclaim")) findings.reclaim = read_taken(*reclaim);
  if (const auto victims = object.optional("victims")) findings.victims = read_taken(*victims);
  return findings;
}

void write_spark(JsonWriter& out, const SparkFindings& findings) {
  out.begin_object().member("complexity", findings.complexity).member("rank", findings.rank).key("demand");
  write_demand(out, findings.demand);
  if (findings.forecast) write_forecast(out.key("forecast"), *findings.forecast);
  out.member("delta", findings.delta).member("growth_bytes", findings.growth_bytes);
  out.member("available_bytes", findings.available_bytes).member("reserve_bytes", findings.reserve_bytes);
  out.member("freeing_bytes", findings.freeing_bytes);
  out.member("need_bytes", findings.need_bytes).member("psi_full_avg10", findings.psi_full_avg10);
  out.member("trigger", to_string(findings.trigger)).member("reason", findings.reason);
  out.key("apps").begin_object();
  for (const auto& [id, app] : findings.apps) write_app_figures(out.key(id), app);
  out.end_object().key("candidates").begin_object();
  for (const auto& [id, candidate] : findings.candidates) write_candidate(out.key(id), candidate);
  out.end_object().key("order").begin_array();
  for (const std::string& id : findings.order) out.value(id);
  out.end_array().key("spared").begin_object();
  for (const auto& [id, reason] : findings.spared) out.member(id, reason);
  out.end_object();
  if (!findings.held.empty()) {
    out.key("held").begin_object();
    for (const auto& [id, reason] : findings.held) out.member(id, reason);
    out.end_object();
  }
  write_taken(out.key("reclaim"), findings.reclaim);
  write_taken(out.key("victims"), findings.victims);
  out.end_object();
}

}  // namespace berth::model
