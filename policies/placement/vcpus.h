// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/cpu_set.h"
#include "policies/placement/host.h"

#include <string>

namespace berth::policies {

struct VcpuChoice {
  model::CpuSet cpus;  // empty where none can be had
  std::string reason;  // in words: why these, or why none
};

// The vCPUs of a bin `home`, a node or a set of them, for a newcomer. Latency-sensitive work gets those that
// its admission told. Where it has none there, or they are not free any more, it gets those of the
// interference search inside the bin; placed instances keep theirs (docs/decisions/pinning.md, window
// search). Best-effort work gets the bin's part of the pool, which is shared.
VcpuChoice choose_vcpus(const Host& host, const Bin& home, const model::PendingWorkload& request);

}  // namespace berth::policies
