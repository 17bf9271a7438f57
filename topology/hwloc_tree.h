// SPDX-License-Identifier: Apache-2.0
// hwloc's tree of the machine, and what of it berth keeps.
#pragma once

#include "model/cpu_set.h"
#include "model/error.h"
#include "model/topology.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hwloc.h>

namespace berth::topology {

struct DestroyTree {
  void operator()(hwloc_topology* tree) const { hwloc_topology_destroy(tree); }
};
using Tree = std::unique_ptr<hwloc_topology, DestroyTree>;

// The tree below another /sys and /proc; nothing of this host enters it.
struct Roots {
  std::filesystem::path sys;
  std::filesystem::path proc;
};

// Only processors, packages, caches from level 2 and NUMA nodes are loaded; vCPUs that are not allowed stay
// in.
model::Result<Tree> load_live();
model::Result<Tree> load_below(const Roots& roots);
// `xml` is an export's text, `name` stands in messages.
model::Result<Tree> load_xml(const std::string& xml, const std::string& name);
model::Result<Tree> load_synthetic(const std::string& description);

// vCPUs that hwloc saw but could not place in the tree: the offline ones.
model::CpuSet unplaced_cpus(const Tree& tree);

// What is known beside the tree, by vCPU; where a map is empty or silent, the tree decides.
struct Beside {
  std::optional<model::CpuSet> allowed;
  std::map<int, int> numa_nodes;  // by the kernel's number
  std::map<int, int> core_kinds;
};

// Every vCPU of the tree, ascending, offline ones at the end: each as a core of its own, since nothing says
// whose sibling it would be, in the socket of its NUMA node.
std::vector<model::Cpu> cpus_of(const Tree& tree, const Beside& beside);

}  // namespace berth::topology
