// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/document.h"
#include "cli/text.h"
#include "model/eviction_findings.h"
#include "model/oversell.h"
#include "model/placement_findings.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "model/straggler_findings.h"

#include <iosfwd>

namespace berth::cli {

// Renders a plan for a user that sees one for the first time. It shows the processors with their owners and
// homes, and the interference of every latency-sensitive instance in its place. It shows the vCPUs left for
// best-effort work, late tasks with the payers of their help, and every action with its reason. `snapshot` is
// the plan's input, and `homes` the kind of domain in which services are at home.
void render_plan(std::ostream& out, const model::Plan& plan, const model::Snapshot& snapshot,
                 const Style& style, model::DomainKind homes = model::DomainKind::llc);

// The tasks with deadlines, the lack and the grants of stragglers, and the payers. Nothing where there are no
// tasks and nothing moves. `now`: time of the plan, epoch seconds.
void render_stragglers(std::ostream& out, const model::StragglerFindings& findings, double now,
                       const Style& style);

// The part of a plan about the advertised capacity, and the workloads to evict.
void render_oversell(std::ostream& out, const model::OversellFindings& findings, const Style& style);

// Spark applications with their costs, whether memory is needed, and the victims for it, in order. Nothing
// where there is no candidate and no need.
void render_spark(std::ostream& out, const model::EvictionFindings& findings, const Style& style);

// For a command that lists only these: prints a line where there are none.
void render_spark_list(std::ostream& out, const model::EvictionFindings& findings, const Style& style);

// The answer to `berthctl rank`.
void render_ranking(std::ostream& out, const model::Ranking& ranking, const Style& style);
// berth.reservations/1.
void render_reservations(std::ostream& out, const Document& reservations, const Style& style);
// The answer to `berthctl admit`.
void render_admission(std::ostream& out, const model::Admission& admission, const Style& style);
// The part of a plan about places for pending work; nothing where none is pending.
void render_placement(std::ostream& out, const model::PlacementFindings& findings, const Style& style);

}  // namespace berth::cli
