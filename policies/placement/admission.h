// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/placement_findings.h"
#include "policies/placement/host.h"

namespace berth::policies {

// Whether a host has room for one newcomer now, beside everybody who runs and who was let in before; if so,
// the host has taken it in its best bin, and the next one is judged with it. Of a refusal: why, and what
// would have to change, bin by bin (docs/algorithms.md, admission). `time` is left to the caller.
model::Admission admit(Host& host, const model::PendingWorkload& newcomer);

}  // namespace berth::policies
