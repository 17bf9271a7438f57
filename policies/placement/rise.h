// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"
#include "model/snapshot.h"
#include "policies/placement/host.h"

#include <optional>

namespace berth::policies {

// The score of a host without a newcomer and with it (docs/decisions/interference.md, scores).
struct Rise {
  double before = 0;
  double after = 0;
};

// For a latency-sensitive newcomer that would own `cpus` of the host; nullopt for a best-effort one, which
// owns none. Residents keep their places, and count as well as the newcomer.
std::optional<Rise> rise_of(const Host& host, const model::PendingWorkload& newcomer,
                            const model::CpuSet& cpus);

}  // namespace berth::policies
