// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/placement_findings.h"
#include "policies/placement/host.h"

namespace berth::policies {

// Decides whether a host has a place for one newcomer now, beside all work that runs or was admitted before.
// If so, the newcomer takes its best bin of the host, and the next one is judged with it. A refusal has the
// reason, and the changes that would help, bin by bin (docs/decisions/admission.md). The caller sets `time`.
model::Admission admit(Host& host, const model::PendingWorkload& newcomer);

}  // namespace berth::policies
