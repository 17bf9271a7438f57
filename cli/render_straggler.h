// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/text.h"
#include "model/straggler_findings.h"

#include <iosfwd>

namespace berth::cli {

// The tasks with deadlines, the lack and the grants of stragglers, and the payers. Nothing where there are no
// tasks and nothing moves. `now`: time of the plan, epoch seconds.
void render_stragglers(std::ostream& out, const model::StragglerFindings& findings, double now,
                       const Style& style);

}  // namespace berth::cli
