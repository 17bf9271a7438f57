// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/document.h"
#include "cli/text.h"
#include "model/topology.h"

#include <iosfwd>
#include <vector>

namespace berth::cli {

// One line each, under a heading, and a table of their links if any is known; nothing without GPUs.
void render_gpus(std::ostream& out, const std::vector<model::Gpu>& gpus, const Style& style);
// The GPUs of a berth.status/1 document, with their workloads.
void render_gpus(std::ostream& out, const Document& status, const Style& style);

}  // namespace berth::cli
