// SPDX-License-Identifier: Apache-2.0
// The members of a topology, common to the snapshot document and the topology document.
#pragma once

#include "model/json.h"
#include "model/json_fields.h"
#include "model/topology.h"

#include <optional>
#include <vector>

namespace berth::model {

// nullopt, and an error in the context, where they are wrong. A reference needs `resolve`.
std::optional<Topology> read_topology(JsonObject& object, const TopologyResolver& resolve);
// "cpus", "gpus" and, where they are known, "numa_distances" and "numa_nodes", into an object that is open.
void write_topology(JsonWriter& out, const Topology& topology);

// The array of GPUs of a topology.
void write_gpus(JsonWriter& out, const std::vector<Gpu>& gpus);

// The array of GPUs of a change. Links are many and stay, so a GPU there has no "links" if they are those of
// the GPU with its id in `before`.
std::vector<Gpu> read_changed_gpus(const JsonValue& value, const std::vector<Gpu>& before);
void write_changed_gpus(JsonWriter& out, const std::vector<Gpu>& gpus, const std::vector<Gpu>& before);

}  // namespace berth::model
