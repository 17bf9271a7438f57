// SPDX-License-Identifier: Apache-2.0
// The fields of what a snapshot and a plan say of overselling.
#pragma once

#include "model/json.h"
#include "model/json_fields.h"
#include "model/oversell.h"
#include "model/plan.h"

#include <array>
#include <map>
#include <string>

namespace berth::model {

inline constexpr std::array kResources{Resource::cpu, Resource::memory};
inline constexpr std::array kStates{SchedulingState::schedule, SchedulingState::no_schedule,
                                    SchedulingState::evict};

template <typename Io>
void fields(Io& io, Of<Io, AdvertisedResource>& resource) {
  io.required("factor", resource.factor, as::number{1, 100});  // far above what makes sense
  io.optional("state", resource.state, as::one_of(kStates, to_string));
}

template <typename Io>
void fields(Io& io, Of<Io, Advertised>& advertised) {
  io.nullable_if_set("cpu", advertised.cpu, as::object);
  io.nullable_if_set("memory", advertised.memory, as::object);
}

template <typename Io>
void fields(Io& io, Of<Io, OversoldResource>& resource) {
  io.nullable("capacity", resource.capacity, as::figure);
  io.nullable("request", resource.request, as::figure);
  io.nullable("latency_sensitive_request", resource.latency_sensitive_request, as::figure);
  io.nullable("best_effort_capacity", resource.best_effort_capacity, as::figure);
  io.optional("samples", resource.samples, as::integer{0, 1 << 30});
  io.nullable("percentile", resource.percentile, as::figure);
  io.nullable("normal", resource.normal, as::figure);
  io.nullable("weighted", resource.weighted, as::figure);
  io.nullable("remembered", resource.remembered, as::figure);
  io.nullable("warming", resource.warming, as::figure);
  io.nullable("used_share", resource.used_share, as::figure);
  io.required("peak", resource.peak, as::figure);
  io.nullable("wanted", resource.wanted, as::figure);
  io.required("factor", resource.factor, as::figure);
  io.required("utilisation", resource.utilisation, as::figure);
  io.required("state", resource.state, as::one_of(kStates, to_string));
  io.optional("reason", resource.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, OversellCandidate>& candidate) {
  io.required("stage", candidate.stage, as::integer{1, 3});
  io.required("priority", candidate.priority, as::integer{-kMaxPriority, kMaxPriority});
  io.required("cost", candidate.cost, as::figure);
  io.required("memory_bytes", candidate.memory_bytes, as::bytes);
  io.nullable("running_priority", candidate.running_priority, as::figure);
}

struct AsNamedAmounts {
  void read(const JsonValue& value, NamedAmounts& amounts) const {
    std::map<std::string, double> by_name;
    as::by_name(as::figure).read(value, by_name);
    amounts = by_name;
  }
  void write(JsonWriter& out, const NamedAmounts& amounts) const {
    as::by_name(as::figure).write(out, amounts);
  }
};

template <typename Io>
void fields(Io& io, Of<Io, OversellFindings>& findings) {
  io.optional("method", findings.method, as::line);
  io.optional("warming", findings.warming, AsNamedAmounts());
  io.required("cpu", findings.cpu, as::object);
  io.required("memory", findings.memory, as::object);
  io.optional("score", findings.score, as::fraction);
  io.optional("stop_threshold", findings.stop_threshold, as::figure);
  io.optional("evict_threshold", findings.evict_threshold, as::figure);
  io.optional("freeing_bytes", findings.freeing_bytes, as::bytes);
  io.required("evict_count", findings.evict_count, as::integer{0, 1 << 30});
  io.required("order", findings.order, as::list(as::name));
  io.if_set("chosen", findings.chosen, as::list(as::name));
  io.optional("candidates", findings.candidates, as::by_name(as::object));
  io.nullable_if_set("warning", findings.warning, as::text);
}

}  // namespace berth::model
