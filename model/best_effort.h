// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/oversell.h"

namespace berth::model {

// Cores or bytes that best-effort work may ask for together while `factor` is advertised
// (docs/decisions/overselling.md, For best-effort work).
double best_effort_amount(const OversoldResource& found, double factor);

}  // namespace berth::model
