// SPDX-License-Identifier: Apache-2.0
// The fields of borrowing, for snapshots, plans and explanations.
#pragma once

#include "model/borrowing.h"
#include "model/json_fields.h"
#include "model/learning.h"

namespace berth::model {

// Far above any wait and any pause.
inline constexpr as::number kSeconds{0, 1e9};

template <typename Io>
void fields(Io& io, Of<Io, LendingState>& state) {
  io.ignore_unknown();
  io.required("cpus", state.cpus, as::cpulist);
  io.nullable_if_set("changed_at", state.changed_at, as::time);
  io.nullable_if_set("quiet_since", state.quiet_since, as::time);
  io.nullable_if_set("usual_delay_s", state.usual_delay_s, kSeconds);
  io.nullable_if_set("usual_cpi", state.usual_cpi, as::number{0, kMostResponse});
  io.nullable_if_set("measured_at", state.measured_at, as::time);
  io.nullable_if_set("cpi", state.cpi, as::number{0, kMostResponse});
  io.optional("pause_s", state.pause_s, kSeconds);
  io.nullable_if_set("paused_until", state.paused_until, as::time);
}

template <typename Io>
void fields(Io& io, Of<Io, Lender>& lender) {
  io.required("withdrawn", lender.withdrawn, as::cpulist);
  io.required("use", lender.use_cores, as::number{0, 1e9});
  io.nullable("runq_latency_s", lender.delay_s, kSeconds);
  io.nullable("target_s", lender.target_s, kSeconds);
  io.required("missed", lender.missed, as::flag);
  io.required("reason", lender.reason, as::text);
  io.required("state", lender.state, as::object);
}

template <typename Io>
void fields(Io& io, Of<Io, Borrower>& borrower) {
  io.required("cpus", borrower.cpus, as::cpulist);
  io.required("reason", borrower.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, BorrowingFindings>& findings) {
  io.required("lenders", findings.lenders, as::by_name(as::object));
  io.required("borrowers", findings.borrowers, as::by_name(as::object));
}

}  // namespace berth::model
