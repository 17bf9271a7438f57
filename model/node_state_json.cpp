// SPDX-License-Identifier: Apache-2.0
#include "model/json.h"
#include "model/json_fields.h"
#include "model/node_state.h"
#include "model/oversell_json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr as::number kAmount{0, 1e18};    // bytes of memory, times a factor
constexpr double kMaxUtilisation = 1e6;   // memory_cap may be tiny
constexpr double kMaxInterval_s = 86400;  // a costly tick makes it longer than the setting

void fields(FieldReader& io, Departure& departure) {
  io.required("time", departure.time, as::time);
  io.required("workload", departure.workload, as::name);
  io.required("decision", departure.decision, as::line);
  io.required("reason", departure.reason, as::line);
  io.required("wanted", departure.wanted, as::flag);
}

// A limited number of them. Kinds that a later berthd may know are left out.
void read_departures(const JsonValue& value, std::vector<Departure>& departures) {
  std::size_t seen = 0;
  value.each([&](const JsonValue& element) {
    if (++seen > kMaxDepartures) return;
    FieldReader io(element);
    Departure departure;
    std::string kind;
    io.required("kind", kind, as::line);
    fields(io, departure);
    for (const Departure::Kind known : {Departure::Kind::evict, Departure::Kind::relocate}) {
      if (kind != to_string(known)) continue;
      departure.kind = known;
      departures.push_back(std::move(departure));
      return;
    }
  });
}

}  // namespace

static void fields(FieldReader& io, NodeResource& resource) {
  io.required("state", resource.state, as::one_of(kStates, to_string));
  io.required("advertised", resource.advertised, kAmount);
  io.required("requested_latency_sensitive", resource.requested_latency_sensitive, kAmount);
  io.optional("best_effort", resource.best_effort, kAmount);
  io.required("utilisation", resource.utilisation, as::number{0, kMaxUtilisation});
}

static void fields(FieldReader& io, NodeState& state) {
  io.schema("berth.state/1");
  io.required("time", state.time, as::time);
  io.required("interval_s", state.interval_s, as::number{0, kMaxInterval_s});
  io.required("score", state.score, as::fraction);
  io.required("cpu", state.cpu, as::object);
  io.required("memory", state.memory, as::object);
  if (const auto departures = io.object().optional("departures"))
    read_departures(*departures, state.departures);
}

const char* to_string(Departure::Kind kind) { return kind == Departure::Kind::evict ? "evict" : "relocate"; }

double NodeResource::for_best_effort() const {
  return std::min(best_effort.value_or(std::max(0.0, advertised - requested_latency_sensitive)), advertised);
}

Result<NodeState> parse_node_state(std::string_view text) {
  if (text.size() > kMaxStateBytes)
    return fail(ErrorKind::invalid_input, fmt::format("longer than {} bytes", kMaxStateBytes));
  return parse_document<NodeState>(text);
}

std::optional<std::string> why_stale(const NodeState& state, double now, double max_age_s) {
  const double allowed = std::max(max_age_s, 2 * state.interval_s);
  const double age = now - state.time;
  if (std::abs(age) <= allowed) return std::nullopt;
  if (age > 0) return fmt::format("its state is {:.0f} s old", age);
  return fmt::format("its state is {:.0f} s in the future", -age);
}

}  // namespace berth::model
