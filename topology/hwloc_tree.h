// SPDX-License-Identifier: Apache-2.0
// Loads hwloc's tree of the machine, and converts it to berth's vCPUs.
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

// Loads the tree below another /sys and /proc; nothing of this host enters it.
struct Roots {
  std::filesystem::path sys;
  std::filesystem::path proc;
};

// Loads only processors, packages, caches from level 2 and NUMA nodes. vCPUs that are not allowed stay in.
model::Result<Tree> load_live();
model::Result<Tree> load_below(const Roots& roots);
// `xml` is an export's text; messages call it `name`.
model::Result<Tree> load_xml(const std::string& xml, const std::string& name);
model::Result<Tree> load_synthetic(const std::string& description);

// vCPUs that hwloc saw but could not place in the tree: the offline ones.
model::CpuSet unplaced_cpus(const Tree& tree);

// Facts from outside the tree, by vCPU. Where a map is empty or lacks a vCPU, the tree decides.
struct Beside {
  std::optional<model::CpuSet> allowed;
  std::map<int, int> numa_nodes;  // by the kernel's number
  std::map<int, int> core_kinds;
};

// Every vCPU of the tree, ascending, offline ones at the end. Each offline vCPU is a core of its own, in the
// socket of its NUMA node: its siblings are unknown. NUMA nodes and sockets have the kernel's numbers;
// sockets only if these are distinct and at most model::kMaxCpu.
std::vector<model::Cpu> cpus_of(const Tree& tree, const Beside& beside);

// The distances between the NUMA nodes that have vCPUs of `cpus`, as cpus_of() returned them (hwloc's
// latencies, which are the kernel's /sys/devices/system/node/node*/distance). Empty where the tree has none
// for all of these nodes, where there is one such node or more than kMostDistantNodes, and where a value is
// impossible.
model::NumaDistances distances_of(const Tree& tree, const std::vector<model::Cpu>& cpus);

// The NUMA nodes of the tree, with their memory. hwloc leaves out the memory of GPUs.
std::vector<model::NumaNode> nodes_of(const Tree& tree);

// The nodes, ascending, if one of them has no memory or no vCPU of `cpus`; else none, as
// model::Topology::numa_nodes() has it.
std::vector<model::NumaNode> if_any_differs(std::vector<model::NumaNode> nodes,
                                            const std::vector<model::Cpu>& cpus);

}  // namespace berth::topology
