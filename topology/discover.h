// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"
#include "model/json.h"
#include "model/topology.h"

#include <filesystem>
#include <optional>
#include <string>

namespace berth::topology {

// Reads the live host by hwloc, offline vCPUs included and marked. `sys_root` and `proc_root` replace /sys
// and /proc where they are not the defaults. Error where hwloc finds no processors.
model::Result<model::Topology> discover(const std::filesystem::path& sys_root = "/sys",
                                        const std::filesystem::path& proc_root = "/proc");
// Reads an hwloc XML export (lstopo FILE.xml). Error names the file.
model::Result<model::Topology> from_xml(const std::filesystem::path& file);
// Reads the text of an export, called `name` in errors.
model::Result<model::Topology> from_xml_text(const std::string& xml, const std::string& name);
// An hwloc synthetic description ("package:2 l3:1 core:4 pu:2"). Error quotes it.
model::Result<model::Topology> from_synthetic(const std::string& description);
// For model::parse_snapshot.
model::Result<model::Topology> resolve(const model::TopologyReference& reference);

// vCPUs online now (SYS_ROOT/devices/system/cpu/online); one small read, for every tick.
model::Result<model::CpuSet> read_online(const std::filesystem::path& sys_root);

// NUMA nodes that have memory now (SYS_ROOT/devices/system/node/has_memory), by the kernel's numbers; one
// small read, for every tick. nullopt on a kernel without NUMA.
std::optional<model::CpuSet> read_memory_nodes(const std::filesystem::path& sys_root);

}  // namespace berth::topology
