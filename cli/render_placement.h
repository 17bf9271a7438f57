// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/document.h"
#include "cli/text.h"
#include "model/placement_findings.h"

#include <iosfwd>

namespace berth::cli {

// The answer to `berthctl rank`.
void render_ranking(std::ostream& out, const model::Ranking& ranking, const Style& style);
// berth.reservations/1.
void render_reservations(std::ostream& out, const Document& reservations, const Style& style);
// The answer to `berthctl admit`.
void render_admission(std::ostream& out, const model::Admission& admission, const Style& style);
// The part of a plan about places for pending work; nothing where none is pending.
void render_placement(std::ostream& out, const model::PlacementFindings& findings, const Style& style);

}  // namespace berth::cli
