// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/text.h"
#include "model/oversell.h"

#include <iosfwd>

namespace berth::cli {

// The part of a plan about the advertised capacity, and the workloads to evict.
void render_oversell(std::ostream& out, const model::OversellFindings& findings, const Style& style);

}  // namespace berth::cli
