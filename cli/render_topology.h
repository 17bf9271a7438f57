// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/topology.h"

#include <map>
#include <string>

namespace berth::cli {

struct RenderOptions {
  int width = 80;                     // columns of the terminal; less than 40 counts as 40
  bool colour = false;                // ANSI colours
  std::map<int, std::string> labels;  // owner of a vCPU; equal labels get the same colour
  std::map<int, double> use;          // share of time 0..1 that a vCPU is busy; stands below it in percent
};

// Draws sockets, their LLC domains side by side, and in each domain its cores as columns. Below a core are
// the vCPUs of its hardware threads, with use and owner where they are given. Offline, forbidden and unlike
// cores are marked and explained.
//
// Lines end in '\n'. None is longer than `width` unless a single column is. Characters that no name has
// (model/name.h) become '?'; long labels are cut.
std::string render_topology(const model::Topology& topology, const RenderOptions& options = {});

}  // namespace berth::cli
