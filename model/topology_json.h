// SPDX-License-Identifier: Apache-2.0
// The fields of a topology, common to the snapshot document and the topology document.
#pragma once

#include "model/json.h"
#include "model/json_fields.h"
#include "model/topology.h"

#include <optional>
#include <span>
#include <vector>

namespace berth::model {

inline constexpr as::integer kIndex{0, kMaxCpu};

template <typename Io>
void fields(Io& io, Of<Io, Cpu>& cpu) {
  io.required("cpu", cpu.cpu, kIndex);
  io.optional("core", cpu.core, kIndex, cpu.cpu);
  io.nullable("llc", cpu.llc, kIndex);
  io.optional("numa", cpu.numa, kIndex);
  io.optional("socket", cpu.socket, kIndex);
  io.if_set("online", cpu.online, as::flag, true);
  io.if_set("allowed", cpu.allowed, as::flag, true);
  io.nullable_if_set("efficiency", cpu.efficiency, kIndex);
}

// All but the links.
template <typename Io>
void fields(Io& io, Of<Io, Gpu>& gpu) {
  io.required("id", gpu.id, as::name);
  io.optional("vendor", gpu.vendor, as::line);
  io.optional("model", gpu.model, as::line);
  io.nullable("numa", gpu.numa, kIndex);
  io.nullable("memory_bytes", gpu.memory_bytes, as::bytes);
  if constexpr (Io::kReads) {
    // A document with a size and without a use means that none is used; only null means unknown.
    const auto used = io.object().optional("memory_used_bytes");
    if (!used && gpu.memory_bytes) gpu.memory_used_bytes = 0;
    if (used && !used->is_null()) gpu.memory_used_bytes = used->bytes();
  } else {
    io.nullable("memory_used_bytes", gpu.memory_used_bytes, as::bytes);
  }
  io.nullable("utilisation", gpu.utilisation, as::fraction);
  io.optional("healthy", gpu.healthy, as::flag);
  io.nullable("holder", gpu.holder, as::name);
  io.nullable_if_set("problem", gpu.problem, as::text);
  io.nullable_if_set("other_processes", gpu.other_processes,
                     as::integer{0, 1 << 22});  // the kernel's own limit
}

template <typename Io>
void fields(Io& io, Of<Io, NumaNode>& node) {
  io.required("node", node.number, kIndex);
  io.nullable("memory_bytes", node.memory_bytes, as::bytes);
}

// nullopt, and an error in the context, where they are wrong. A reference needs `resolve`.
std::optional<Topology> read_topology(JsonObject& object, const TopologyResolver& resolve);
// "cpus", "gpus" and, where they are known, "numa_distances" and "numa_nodes", into an object that is open.
void write_topology(JsonWriter& out, const Topology& topology);

// How the GPUs of a topology are written. Links are many and stay, so those of a change have no "links" if
// these are those of the GPU with the same id in `before`.
struct AsGpus {
  std::span<const Gpu> before = {};

  void read(const JsonValue& value, std::vector<Gpu>& gpus) const;
  void write(JsonWriter& out, const std::vector<Gpu>& gpus) const;
};

}  // namespace berth::model
