// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/text.h"
#include "model/plan.h"
#include "model/snapshot.h"

#include <iosfwd>

namespace berth::cli {

// Renders a plan for a user that sees one for the first time. It shows the processors with their owners, and
// the interference of every latency-sensitive instance in its place. It shows the vCPUs left for best-effort
// work, late tasks with the payers of their help, and every action with its reason. `snapshot` is the plan's
// input.
void render_plan(std::ostream& out, const model::Plan& plan, const model::Snapshot& snapshot,
                 const Style& style);

}  // namespace berth::cli
