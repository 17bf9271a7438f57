// SPDX-License-Identifier: Apache-2.0
#include "model/bounds.h"
#include "model/json.h"
#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/learning.h"

#include <cmath>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr const char* kObservationSchema = "berth.observation/1";
constexpr const char* kProfilesSchema = "berth.profiles/1";
constexpr const char* kModelSchema = "berth.model/1";
constexpr const char* kModelsSchema = "berth.models/1";

constexpr double kMostRows = 1e12;
// The largest square is that of a response or of misses. No sum of them is beyond it.
constexpr double kMostSum = kMostRows * kMostMisses * kMostMisses;
// Sums come from additions and subtractions, each of which rounds.
constexpr double kRounding = 1e-6;

// A service's name, as in a rule (berth.toml(5)), or a workload's id.
std::string read_service(JsonObject& object) { return object.required("service").name(); }

double read_sum(const JsonValue& value) { return value.number(-kMostSum, kMostSum); }
double read_weight(const JsonValue& value) { return value.number(0, kMostRows); }

template <std::size_t N>
std::array<double, N> read_sums(const JsonValue& value) {
  std::array<double, N> sums{};
  std::size_t count = 0;
  value.each([&](const JsonValue& element) {
    if (count < N) sums[count] = read_sum(element);
    ++count;
  });
  if (!value.context().failed() && count != N) value.fail(fmt::format("{} numbers, not {}", count, N));
  return sums;
}

template <std::size_t N>
void write_sums(JsonWriter& out, const char* name, const std::array<double, N>& sums) {
  out.key(name).begin_array();
  for (const double sum : sums) out.value(sum);
  out.end_array();
}

// |sum of a b| <= sqrt(sum of a a * sum of b b): what every choice of rows obeys.
bool is_product(double ab, double aa, double bb) {
  return aa >= 0 && bb >= 0 && std::abs(ab) <= (1 + kRounding) * std::sqrt(aa) * std::sqrt(bb);
}

bool can_add_up(const RowSums& rows) {
  constexpr std::array<std::size_t, 3> kSquares{0, 3, 5};
  constexpr std::array<std::array<std::size_t, 2>, 6> kFactors{
      {{0, 0}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 2}}};
  if (!is_product(rows.y, rows.n, rows.yy)) return false;
  for (std::size_t i = 0; i < rows.x.size(); ++i) {
    const double square = rows.xx[kSquares[i]];
    if (!is_product(rows.x[i], rows.n, square) || !is_product(rows.xy[i], rows.yy, square)) return false;
  }
  for (std::size_t i = 0; i < rows.xx.size(); ++i) {
    if (!is_product(rows.xx[i], rows.xx[kSquares[kFactors[i][0]]], rows.xx[kSquares[kFactors[i][1]]]))
      return false;
  }
  return true;
}

RowSums read_rows(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  RowSums rows;
  rows.n = read_weight(object.required("n"));
  rows.x = read_sums<3>(object.required("x"));
  rows.xx = read_sums<6>(object.required("xx"));
  rows.xy = read_sums<3>(object.required("xy"));
  rows.y = read_sum(object.required("y"));
  rows.yy = read_sum(object.required("yy"));
  if (!object.context().failed() && !can_add_up(rows)) value.fail("no observations can have these sums");
  return rows;
}

void write_rows(JsonWriter& out, const char* name, const RowSums& rows) {
  out.key(name).begin_object().member("n", rows.n);
  write_sums(out, "x", rows.x);
  write_sums(out, "xx", rows.xx);
  write_sums(out, "xy", rows.xy);
  out.member("y", rows.y).member("yy", rows.yy).end_object();
}

ErrorSums read_errors(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  const auto squares = [&object](const char* name) { return object.required(name).number(0, kMostSum); };
  ErrorSums errors;
  errors.n = read_weight(object.required("n"));
  errors.model = squares("model");
  errors.fallback = squares("default");
  errors.constant = squares("constant");
  errors.llc_n = read_weight(object.required("llc_n"));
  errors.llc_without = squares("llc_without");
  errors.llc_with = squares("llc_with");
  return errors;
}

void write_errors(JsonWriter& out, const ErrorSums& errors) {
  out.key("errors").begin_object().member("n", errors.n).member("model", errors.model);
  out.member("default", errors.fallback).member("constant", errors.constant);
  out.member("llc_n", errors.llc_n).member("llc_without", errors.llc_without);
  out.member("llc_with", errors.llc_with).end_object();
}

void read_change(const JsonValue& value, LearnedSums& sums) {
  JsonObject object(value);
  object.ignore_unknown();
  sums.rise = object.required("rise").number(0, kMostSum);
  sums.calm_error = object.required("calm_error").number(0, kMostSum);
  sums.calm_share = object.required("calm_share").number(0, kMostSum);
  sums.recent_error = object.required("recent_error").number(0, kMostSum);
  sums.strange = object.required("strange").number(0, kMostRows);
  sums.prior_dropped = object.required("prior_dropped").boolean();
  if (const auto time = object.nullable("forgotten_at")) sums.forgotten_at = time->epoch();
}

void write_change(JsonWriter& out, const LearnedSums& sums) {
  out.key("change").begin_object().member("rise", sums.rise).member("calm_share", sums.calm_share);
  out.member("calm_error", sums.calm_error).member("recent_error", sums.recent_error);
  out.member("strange", sums.strange).member("prior_dropped", sums.prior_dropped);
  out.member("forgotten_at", sums.forgotten_at).end_object();
}

LearnedSums read_learned(const JsonValue& value, ProfileKey& key) {
  JsonObject object(value);
  object.ignore_unknown();
  key.service = read_service(object);
  key.response = object.required("response").choice(kResponses, to_string);
  LearnedSums sums;
  sums.time = object.required("time").epoch();
  sums.rows = read_rows(object.required("rows"));
  if (const auto rows = object.nullable("llc_rows")) sums.llc_rows = read_rows(*rows);
  const auto level = object.required("level");
  const auto levels = read_sums<3>(level);
  sums.level_u = levels[0];
  sums.level_sc = levels[1];
  sums.level_ss = levels[2];
  if (!object.context().failed() && !(sums.level_u >= 0 && sums.level_sc >= 0 && sums.level_ss >= 0))
    level.fail("no observations can have these sums");
  sums.spent = read_weight(object.required("spent"));
  sums.errors = read_errors(object.required("errors"));
  if (const auto change = object.optional("change")) read_change(*change, sums);
  return sums;
}

void write_learned(JsonWriter& out, const ProfileKey& key, const LearnedSums& sums) {
  out.begin_object().member("service", key.service).member("response", to_string(key.response));
  out.member("time", sums.time);
  write_rows(out, "rows", sums.rows);
  if (sums.llc_rows.n > 0) write_rows(out, "llc_rows", sums.llc_rows);
  write_sums(out, "level", std::array{sums.level_u, sums.level_sc, sums.level_ss});
  out.member("spent", sums.spent);
  write_errors(out, sums.errors);
  write_change(out, sums);
  out.end_object();
}

void write_interval(JsonWriter& out, const char* name, const std::optional<Interval>& interval) {
  out.key(name);
  if (interval) {
    out.begin_array().value(interval->low).value(interval->high).end_array();
  } else {
    out.null();
  }
}

void write_fit(JsonWriter& out, const LearnedModel& model) {
  using Figure = std::optional<double>;
  const auto* fit = model.fit ? &*model.fit : nullptr;
  const bool cached = fit != nullptr && fit->k3.has_value();
  out.member("b0", fit != nullptr ? Figure(fit->b0) : Figure());
  out.member("k1", fit != nullptr ? Figure(fit->k1.value) : Figure());
  out.member("k2", fit != nullptr ? Figure(fit->k2.value) : Figure());
  out.member("k3", cached ? Figure(fit->k3->value) : Figure());
  out.member("alone", fit != nullptr ? Figure(fit->alone) : Figure());
  out.key("interval").begin_object();
  write_interval(out, "k1", fit != nullptr ? fit->k1.interval : std::nullopt);
  write_interval(out, "k2", fit != nullptr ? fit->k2.interval : std::nullopt);
  write_interval(out, "k3", cached ? std::optional(fit->k3->interval) : std::nullopt);
  out.end_object();
}

void write_model(JsonWriter& out, const LearnedModel& model) {
  out.member("service", model.service).member("response", to_string(model.response));
  out.member("n", model.n).member("accepted", model.accepted).member("why", model.why);
  write_fit(out, model);
  out.key("bounded");
  if (model.bounded) {
    out.begin_object().member("k1", model.bounded->k1).member("k2", model.bounded->k2).end_object();
  } else {
    out.null();
  }
  out.key("error");
  if (model.errors) {
    out.begin_object().member("model", model.errors->model).member("default", model.errors->fallback);
    out.member("constant", model.errors->constant).end_object();
  } else {
    out.null();
  }
}

}  // namespace

Result<Observation> parse_observation(std::string_view text) {
  const auto document = parse_json(text);
  if (!document) return fail(document.error());
  ReadContext context;
  const JsonValue root(context, *document);
  JsonObject object(root);
  object.ignore_unknown();
  object.require_schema(kObservationSchema);
  Observation seen;
  seen.service = read_service(object);
  seen.instance = object.required("instance").name();
  seen.time = object.required("time").epoch();
  seen.response = object.required("response").choice(kResponses, to_string);
  seen.y = object.required("y").number(0, kMostResponse);
  seen.sc = object.required("sc").number(0, kMostPressure);
  seen.ss = object.required("ss").number(0, kMostPressure);
  if (const auto llc = object.nullable("llc")) seen.llc = llc->number(0, kMostMisses);
  seen.u = object.required("u").number(0, kMostUse);
  if (context.failed()) return fail(*context.error());
  return seen;
}

std::string to_json(const Observation& seen) {
  JsonWriter out;
  out.begin_object().member("schema", kObservationSchema).member("service", seen.service);
  out.member("instance", seen.instance).member("time", seen.time);
  out.member("response", to_string(seen.response)).member("y", seen.y).member("sc", seen.sc);
  out.member("ss", seen.ss).member("llc", seen.llc).member("u", seen.u).end_object();
  return out.take();
}

Result<Profiles> parse_profiles(std::string_view text) {
  const auto document = parse_json(text);
  if (!document) return fail(document.error());
  ReadContext context;
  const JsonValue root(context, *document);
  JsonObject object(root);
  object.ignore_unknown();
  object.require_schema(kProfilesSchema);
  Profiles profiles;
  object.required("profiles").each([&profiles](const JsonValue& element) {
    if (profiles.size() >= kMostProfiles) {
      element.fail(fmt::format("more than the {} profiles accepted", kMostProfiles));
      return;
    }
    ProfileKey key;
    const auto sums = read_learned(element, key);
    if (element.context().failed()) return;
    if (!profiles.emplace(std::move(key), sums).second)
      element.fail("a profile of this service and response stands before it");
  });
  if (context.failed()) return fail(*context.error());
  return profiles;
}

std::string to_json(const Profiles& profiles, std::string_view host) {
  JsonWriter out;
  out.begin_object().member("schema", kProfilesSchema).member("host", host);
  out.key("profiles").begin_array();
  for (const auto& [key, sums] : profiles) write_learned(out, key, sums);
  out.end_array().end_object();
  return out.take();
}

std::string to_json(const LearnedModel& model) {
  JsonWriter out;
  out.begin_object().member("schema", kModelSchema);
  write_model(out, model);
  out.end_object();
  return out.take();
}

std::string to_json(const std::vector<LearnedModel>& models) {
  JsonWriter out;
  out.begin_object().member("schema", kModelsSchema).key("models").begin_array();
  for (const LearnedModel& model : models) {
    out.begin_object();
    write_model(out, model);
    out.end_object();
  }
  out.end_array().end_object();
  return out.take();
}

}  // namespace berth::model
