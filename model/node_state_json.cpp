// SPDX-License-Identifier: Apache-2.0
#include "model/json.h"
#include "model/json_reader.h"
#include "model/node_state.h"
#include "model/oversell_json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr double kMaxAmount = 1e18;       // bytes of memory, times a factor
constexpr double kMaxUtilisation = 1e6;   // memory_cap may be tiny
constexpr double kMaxInterval_s = 86400;  // a costly tick makes it longer than the setting

NodeResource read_resource(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  NodeResource resource;
  resource.state = object.required("state").choice(kStates, to_string);
  resource.advertised = object.required("advertised").number(0, kMaxAmount);
  resource.requested_latency_sensitive = object.required("requested_latency_sensitive").number(0, kMaxAmount);
  if (const auto best_effort = object.optional("best_effort"))
    resource.best_effort = best_effort->number(0, kMaxAmount);
  resource.utilisation = object.required("utilisation").number(0, kMaxUtilisation);
  return resource;
}

// nullopt for a kind that a later berthd may know.
std::optional<Departure> read_departure(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  Departure departure;
  const std::string kind = object.required("kind").line();
  departure.time = object.required("time").epoch();
  departure.workload = object.required("workload").name();
  departure.decision = object.required("decision").line();
  departure.reason = object.required("reason").line();
  departure.wanted = object.required("wanted").boolean();
  for (const Departure::Kind known : {Departure::Kind::evict, Departure::Kind::relocate}) {
    if (kind != to_string(known)) continue;
    departure.kind = known;
    return departure;
  }
  return std::nullopt;
}

NodeState read_state(const JsonValue& root) {
  JsonObject object(root);
  object.ignore_unknown();
  object.require_schema("berth.state/1");
  NodeState state;
  state.time = object.required("time").epoch();
  state.interval_s = object.required("interval_s").number(0, kMaxInterval_s);
  state.score = object.required("score").fraction();
  state.cpu = read_resource(object.required("cpu"));
  state.memory = read_resource(object.required("memory"));
  if (const auto departures = object.optional("departures")) {
    std::size_t seen = 0;
    departures->each([&](const JsonValue& value) {
      if (++seen > kMaxDepartures) return;
      if (auto departure = read_departure(value)) state.departures.push_back(std::move(*departure));
    });
  }
  return state;
}

}  // namespace

const char* to_string(Departure::Kind kind) { return kind == Departure::Kind::evict ? "evict" : "relocate"; }

double NodeResource::for_best_effort() const {
  return std::min(best_effort.value_or(std::max(0.0, advertised - requested_latency_sensitive)), advertised);
}

Result<NodeState> parse_node_state(std::string_view text) {
  if (text.size() > kMaxStateBytes)
    return fail(ErrorKind::invalid_input, fmt::format("longer than {} bytes", kMaxStateBytes));
  const auto document = parse_json(text);
  if (!document) return fail(document.error());
  ReadContext context;
  NodeState state = read_state(JsonValue(context, *document));
  if (context.failed()) return fail(*context.error());
  return state;
}

std::optional<std::string> why_stale(const NodeState& state, double now, double max_age_s) {
  const double allowed = std::max(max_age_s, 2 * state.interval_s);
  const double age = now - state.time;
  if (std::abs(age) <= allowed) return std::nullopt;
  if (age > 0) return fmt::format("its state is {:.0f} s old", age);
  return fmt::format("its state is {:.0f} s in the future", -age);
}

}  // namespace berth::model
