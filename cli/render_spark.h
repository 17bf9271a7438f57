// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/text.h"
#include "model/eviction_findings.h"

#include <iosfwd>

namespace berth::cli {

// Spark applications with their costs, whether memory is needed, and the victims for it, in order. Nothing
// where there is no candidate and no need.
void render_spark(std::ostream& out, const model::EvictionFindings& findings, const Style& style);

// For a command that lists only these: prints a line where there are none.
void render_spark_list(std::ostream& out, const model::EvictionFindings& findings, const Style& style);

}  // namespace berth::cli
