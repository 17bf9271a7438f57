// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/oversell.h"
#include "model/plan.h"

#include <optional>

namespace berth::policies {

// How crowded and disturbed new work would be on this host, 0..1, for schedulers that compare hosts
// (docs/decisions/overselling.md, Score of the host). Without findings of the interference policy the host
// counts as undisturbed. Pure.
double host_score(const model::OversellFindings& oversell,
                  const std::optional<model::InterferenceFindings>& interference);

}  // namespace berth::policies
