// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/document.h"
#include "cli/text.h"
#include "model/topology.h"

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace berth::cli {

struct RenderOptions {
  int width = 80;                     // columns of the terminal; less than 40 counts as 40
  bool colour = false;                // ANSI colours
  std::map<int, std::string> labels;  // owner of a vCPU; equal labels get the same colour
  std::map<int, double> use;          // share of time 0..1 that a vCPU is busy; stands below it in percent
  std::map<std::string, model::CpuSet> homes;  // by service, the ids of its domains
  model::DomainKind home_kind = model::DomainKind::llc;
};

// Draws sockets, their LLC domains side by side, and in each domain its cores as columns. Below a core are
// the vCPUs of its hardware threads, with use and owner where they are given. Below a domain are the services
// at home there, some of them where they are many. Offline, forbidden and unlike cores are marked and
// explained.
//
// Lines end in '\n'. None is longer than `width` unless a single column is. Characters that no name has
// (model/name.h) become '?'; long labels are cut.
std::string render_topology(const model::Topology& topology, const RenderOptions& options = {});

// One line each, under a heading, and a table of their links if any is known; nothing without GPUs.
void render_gpus(std::ostream& out, const std::vector<model::Gpu>& gpus, const Style& style);
// The GPUs of a berth.status/1 document, with their workloads.
void render_gpus(std::ostream& out, const Document& status, const Style& style);

// The processors of a large host on few lines: each LLC domain's vCPUs as one character each, ascending. '0'
// to '9' are the tenths of time that it is busy, '?' is unknown. 'x' is offline, '!' is a vCPU that berth may
// not use. `use` is a share 0..1. With `owners`, by vCPU, a line below has a letter for the owner of each
// vCPU, '.' for none, and the last line names the owners; one that has no letter left is '#'.
std::string render_vcpu_map(const model::Topology& topology, const std::map<int, double>& use,
                            const Style& style, const std::map<int, std::string>& owners = {});

}  // namespace berth::cli
