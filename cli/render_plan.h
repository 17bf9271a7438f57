// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/text.h"
#include "model/plan.h"
#include "model/snapshot.h"

#include <iosfwd>

namespace berth::cli {

// A plan for somebody who sees one for the first time: the processors with who owns them, what every
// latency-sensitive instance suffers where it would be, what is left for best-effort work, which tasks are
// late and who pays for helping them, and every action with its reason. `snapshot` is what the plan was made
// of.
void render_plan(std::ostream& out, const model::Plan& plan, const model::Snapshot& snapshot,
                 const Style& style);

}  // namespace berth::cli
