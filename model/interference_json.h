// SPDX-License-Identifier: Apache-2.0
// The fields of the findings of interference.
#pragma once

#include "model/by_domain_json.h"
#include "model/json.h"
#include "model/json_fields.h"
#include "model/plan.h"

#include <array>

namespace berth::model {

inline constexpr std::array kWaitCauses{WaitCause::quota, WaitCause::vcpus, WaitCause::best_effort,
                                        WaitCause::unknown};
inline constexpr std::array kWarningCauses{WarningCause::use, WarningCause::quota, WarningCause::place,
                                           WarningCause::priority};
inline constexpr std::array kOrigins{ModelOrigin::fallback, ModelOrigin::given, ModelOrigin::fitted};

template <typename Io>
void fields(Io& io, Of<Io, PlacedInstance>& placed) {
  io.required("cpus", placed.cpus, as::cpulist);
  io.required("cpu_sc", placed.cpu_sc, as::figure);
  io.required("cpu_ss", placed.cpu_ss, as::figure);
  io.required("score", placed.score, as::figure);
  io.optional("pressure", placed.pressure, as::fraction);
  io.required("model", placed.model, as::one_of(kOrigins, to_string));
  io.optional("model_reason", placed.model_reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, WorkloadFinding>& finding) {
  io.required("workload", finding.workload, as::name);
  io.required("reason", finding.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, SharedInstance>& shared) {
  io.required("home", shared.home, as::cpulist);
  io.required("cpus", shared.cpus, as::cpulist);
  io.required("cores", shared.cores, as::figure);
  io.required("score", shared.score, as::figure);
  io.required("reason", shared.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, BestEffortPool>& pool) {
  io.required("cpus", pool.cpus, as::cpulist);
  io.required("utilisation", pool.utilisation, as::fraction);
  io.if_set("domains", pool.domains, AsByDomain(as::object));
  io.if_set("reserved", pool.reserved, as::cpulist);
}

template <typename Io>
void fields(Io& io, Of<Io, OtherWork>& others) {
  io.required("cpus", others.cpus, as::cpulist);
  io.required("confined", others.confined, as::list(as::name));
  io.required("unconfined", others.unconfined, as::list(as::object));
}

template <typename Io>
void fields(Io& io, Of<Io, WaitingInstance>& waiting) {
  io.required("runq_latency_s", waiting.runq_latency_s, as::figure);
  io.required("cause", waiting.cause, as::one_of(kWaitCauses, to_string));
  io.nullable("vcpus", waiting.vcpus, as::or_null(as::integer{1, kMaxCpu + 1}));
  io.if_set("quieter", waiting.quieter, as::cpulist);
  io.required("reason", waiting.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, ServiceWarning>& warning) {
  io.required("workload", warning.workload, as::name);
  io.required("cause", warning.cause, as::one_of(kWarningCauses, to_string));
  io.nullable("vcpus", warning.vcpus, as::integer{1, kMaxCpu + 1});
  io.required("reason", warning.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, InterferenceFindings>& findings) {
  io.required("weighting", findings.weighting, as::line);
  io.required("search", findings.search, as::line);
  io.required("score_node", findings.score_node, as::figure);
  io.nullable("score_unpinned", findings.score_unpinned, as::figure);
  io.nullable("lower_bound", findings.lower_bound, as::figure);
  io.nullable("gap", findings.gap, as::figure);
  io.if_set("search_reason", findings.search_reason, as::text);
  io.if_set("moved", findings.moved, as::list(as::name));
  io.required("domains", findings.domains, AsByDomain(as::figure));
  io.required("instances", findings.instances, as::by_name(as::object));
  io.if_set("shared", findings.shared, as::by_name(as::object));
  io.required("unplaceable", findings.unplaceable, as::list(as::object));
  io.optional("best_effort", findings.best_effort, as::object);
  io.optional("unconfined", findings.unconfined, as::list(as::object));
  io.if_set("others", findings.others, as::object, OtherWork());
  io.optional("waiting", findings.waiting, as::by_name(as::object));
  io.optional("warnings", findings.warnings, as::list(as::object));
  io.if_set("absent_reserved", findings.absent_reserved, as::cpulist);
  io.if_set("shared_reserved", findings.shared_reserved, as::cpulist);
}

}  // namespace berth::model
