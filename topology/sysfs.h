// SPDX-License-Identifier: Apache-2.0
// The kernel's data about processors beyond hwloc's tree: small files below an injected /sys.
#pragma once

#include "model/cpu_set.h"
#include "model/error.h"
#include "model/topology.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::topology {

// Far above any single attribute that is read, in bytes.
inline constexpr std::size_t kLargestAttribute = 4096;

// Whole content of a file. Error names it, also where it is larger than `limit_bytes`.
model::Result<std::string> read_file(const std::filesystem::path& file, std::size_t limit_bytes);

// A file that holds one cpulist; nullopt where there is no such file. Error names it.
model::Result<std::optional<model::CpuSet>> read_cpulist(const std::filesystem::path& file);

// The vCPUs that the root control group may use: cpuset of v2, else of v1 (kernel, cgroup-v2.rst and
// cgroup-v1/cpusets.rst). nullopt without a cpuset controller. The caller's own cpuset does not count: berth
// gives out the host's vCPUs, not those of its own unit.
model::Result<std::optional<model::CpuSet>> read_root_cpuset(const std::filesystem::path& sys_root);

// NUMA node, by the kernel's number, of each online vCPU and of those in `offline`; empty on a kernel without
// NUMA.
std::map<int, int> read_numa_nodes(const std::filesystem::path& sys_root, const model::CpuSet& offline);

// The NUMA nodes that are online, ascending, with their memory: 0 where the kernel says that a node has none
// (node/has_memory, nodeN/meminfo). That is what cpuset.mems goes by. Empty on a kernel without NUMA.
std::vector<model::NumaNode> read_memory_of_nodes(const std::filesystem::path& sys_root);

// Rank of each vCPU by the kinds of cores that the kernel reports on hybrid x86 (its PMUs cpu_lowpower,
// cpu_atom, cpu_core). 0 is the most power-efficient. Empty where there are fewer than two kinds.
std::map<int, int> read_core_kinds(const std::filesystem::path& sys_root);

}  // namespace berth::topology
