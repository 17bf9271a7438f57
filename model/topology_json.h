// SPDX-License-Identifier: Apache-2.0
// The members of a topology, common to the snapshot document and the topology document.
#pragma once

#include "model/json.h"
#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/topology.h"

#include <optional>
#include <vector>

namespace berth::model {

// nullopt, and an error in the context, where they are wrong. A reference needs `resolve`.
std::optional<Topology> read_topology(JsonObject& object, const TopologyResolver& resolve);
// "cpus", "gpus" and, where they are known, "numa_distances", into an object that is open.
void write_topology(JsonWriter& out, const Topology& topology);

// An array of GPUs.
std::vector<Gpu> read_gpus(const JsonValue& value);
void write_gpus(JsonWriter& out, const std::vector<Gpu>& gpus);

}  // namespace berth::model
