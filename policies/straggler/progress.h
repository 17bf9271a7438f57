// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/plan.h"
#include "model/workload.h"
#include "policies/straggler/settings.h"

#include <optional>

namespace berth::policies {

// The newest figure of progress, from the workload's own reports or from its usage samples; nullopt where
// there is none.
std::optional<double> last_progress(const model::Workload& workload);

// Judges a latency-sensitive workload by its last four reports: v1, v2, T, whether it straggles, then rho,
// and the reason in words (docs/decisions/stragglers.md [HUST]). `now`: the snapshot's time, epoch seconds.
// `settings`: max_growth and restore_hold_s count. nullopt for a workload with neither deadline nor progress:
// it is no task.
std::optional<model::StragglerTask> judge(const model::Workload& workload, double now,
                                          const StragglerSettings& settings);

}  // namespace berth::policies
