// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/ledger/views.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "model/standing.h"

#include <vector>

namespace berth::daemon {

// A finding that was absent for so long is news again.
inline constexpr double kQuiet_s = 30;

// The findings of a tick that messages tell.
struct StragglersNews {
  std::vector<StragglerNews> found;
  std::vector<StragglerNews> relocate;
};

// The findings of `plan`, made of `snapshot`, that are new. `before` is what stood at that time: a finding of
// a run is new if that run had none for kQuiet_s.
StragglersNews straggler_news(const model::Standing& before, const model::Snapshot& snapshot,
                              const model::Plan& plan);

}  // namespace berth::daemon
