// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/document.h"
#include "cli/text.h"
#include "model/topology.h"

#include <iosfwd>
#include <vector>

namespace berth::cli {

// A line each, under a heading; nothing where there is none.
void render_gpus(std::ostream& out, const std::vector<model::Gpu>& gpus, const Style& style);
// Those of a berth.status/1 document, with who uses them.
void render_gpus(std::ostream& out, const Document& status, const Style& style);

}  // namespace berth::cli
