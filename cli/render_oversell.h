// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/text.h"
#include "model/oversell.h"

#include <iosfwd>

namespace berth::cli {

// The part of a plan that says what the node advertises, and who would have to go.
void render_oversell(std::ostream& out, const model::OversellFindings& findings, const Style& style);

}  // namespace berth::cli
