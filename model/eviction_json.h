// SPDX-License-Identifier: Apache-2.0
// The fields of the eviction policy's findings.
#pragma once

#include "model/eviction_findings.h"
#include "model/json.h"
#include "model/json_fields.h"

#include <array>

namespace berth::model {

inline constexpr std::array kCandidateKinds{EvictionCandidate::Kind::executor,
                                            EvictionCandidate::Kind::driver, EvictionCandidate::Kind::other};
inline constexpr std::array kTriggers{EvictionTrigger::none, EvictionTrigger::need,
                                      EvictionTrigger::pressure};

template <typename Io>
void fields(Io& io, Of<Io, MemoryDemand>& demand) {
  io.required("samples", demand.samples, as::count);
  io.required("mean_bytes", demand.mean_bytes, as::amount);
  io.required("sd_bytes", demand.sd_bytes, as::amount);
  io.required("latest_bytes", demand.latest_bytes, as::bytes);
  io.required("slope_bytes_per_s", demand.slope_bytes_per_s, as::figure);
  io.required("rising", demand.rising, as::flag);
}

template <typename Io>
void fields(Io& io, Of<Io, MemoryForecast>& forecast) {
  io.required("shape", forecast.shape, as::line);
  io.required("horizon", forecast.horizon_s, as::amount);
  io.required("peak_bytes", forecast.peak_bytes, as::amount);
  io.required("margin_bytes", forecast.margin_bytes, as::figure);
  io.required("slope_bytes_per_s", forecast.slope_bytes_per_s, as::figure);
  io.required("readings", forecast.readings, as::count);
  io.required("errors", forecast.errors, as::count);
}

template <typename Io>
void fields(Io& io, Of<Io, SparkAppFigures>& app) {
  io.required("computation", app.computation_s, as::amount);
  io.required("transmission", app.transmission_bytes, as::amount);
  io.required("recalculation", app.recalculation_s, as::amount);
  io.nullable("remaining", app.remaining_s, as::amount);
  io.required("cost", app.cost_s, as::figure);
  io.optional("stages", app.stages, as::count);
  io.optional("stages_to_come", app.stages_to_come, as::count);
  io.optional("stages_done", app.stages_done, as::amount);
  io.optional("frees_bytes", app.frees_bytes, as::bytes);
  io.nullable("cost_per_byte", app.cost_per_byte, as::figure);
}

template <typename Io>
void fields(Io& io, Of<Io, EvictionCandidate>& candidate) {
  io.required("kind", candidate.kind, as::one_of(kCandidateKinds, to_string));
  io.nullable("app", candidate.app, as::name);
  io.required("lost", candidate.lost_s, as::amount);
  io.required("running", candidate.running_s, as::amount);
  io.required("cost", candidate.cost_s, as::figure);
  io.required("frees_bytes", candidate.frees_bytes, as::bytes);
  io.nullable("rank_key", candidate.rank_key, as::figure);
  io.optional("reason", candidate.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, MemoryTaken>& taken) {
  io.required("workload", taken.workload, as::name);
  io.required("bytes", taken.bytes, as::bytes);
  io.optional("reason", taken.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, EvictionFindings>& findings) {
  io.optional("complexity", findings.complexity, as::line);
  io.optional("rank", findings.rank, as::line);
  io.optional("demand", findings.demand, as::object);
  io.nullable_if_set("forecast", findings.forecast, as::object);
  io.required("delta", findings.delta, as::amount);
  io.required("growth_bytes", findings.growth_bytes, as::bytes);
  io.optional("available_bytes", findings.available_bytes, as::bytes);
  io.optional("reserve_bytes", findings.reserve_bytes, as::bytes);
  io.optional("freeing_bytes", findings.freeing_bytes, as::bytes);
  io.required("need_bytes", findings.need_bytes, as::bytes);
  io.optional("psi_full_avg10", findings.psi_full_avg10, as::percent);
  io.optional("trigger", findings.trigger, as::one_of(kTriggers, to_string));
  io.optional("reason", findings.reason, as::text);
  io.required("apps", findings.apps, as::by_name(as::object));
  io.optional("candidates", findings.candidates, as::by_name(as::object));
  io.required("order", findings.order, as::list(as::name));
  io.optional("spared", findings.spared, as::by_name(as::text));
  io.if_set("held", findings.held, as::by_name(as::text));
  io.optional("reclaim", findings.reclaim, as::list(as::object));
  io.optional("victims", findings.victims, as::list(as::object));
}

}  // namespace berth::model
