// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/text.h"
#include "model/spark_findings.h"

#include <iosfwd>

namespace berth::cli {

// Spark applications with their costs, whether memory is needed, and who would go for it, in order; nothing
// where nobody could be evicted and nothing is needed.
void render_spark(std::ostream& out, const model::SparkFindings& findings, const Style& style);

}  // namespace berth::cli
