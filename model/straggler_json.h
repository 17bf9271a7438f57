// SPDX-License-Identifier: Apache-2.0
// The fields of the straggler policy's findings.
#pragma once

#include "model/json.h"
#include "model/json_fields.h"
#include "model/straggler_findings.h"
#include "model/workload_json.h"

#include <array>

namespace berth::model {

template <typename Io>
void fields(Io& io, Of<Io, Resources>& resources) {
  io.optional("cpu", resources.cpu_cores, as::amount);
  io.optional("memory", resources.memory_bytes, as::bytes);
}

template <typename Io>
void fields(Io& io, Of<Io, StragglerTask>& task) {
  io.required("straggler", task.straggler, as::flag);
  io.optional("reason", task.reason, as::text);
  io.nullable("v1", task.v1, as::figure);
  io.nullable("v2", task.v2, as::figure);
  io.nullable("finish", task.finish, as::any_time);
  io.nullable("deadline", task.deadline, as::time);
  io.nullable("growth", task.growth, as::amount);
  io.optional("samples", task.samples, as::list(as::object));
  io.nullable("allocation", task.allocation_cores, as::amount);
  io.nullable("allocation_memory_bytes", task.allocation_bytes, as::bytes);
  io.optional("extension", task.extension.cpu_cores, as::amount);
  io.optional("extension_memory_bytes", task.extension.memory_bytes, as::bytes);
  io.optional("granted", task.granted, as::object);
  io.nullable("vcpus", task.vcpus, as::integer{1, kMaxCpu + 1});
}

template <typename Io>
void fields(Io& io, Of<Io, RedundantCpu>& cpu) {
  io.required("utilisation", cpu.utilisation, as::amount);
  io.required("reclaimable", cpu.reclaimable_cores, as::amount);
}

template <typename Io>
void fields(Io& io, Of<Io, RedundantMemory>& memory) {
  io.required("utilisation", memory.utilisation, as::amount);
  io.required("reclaimable", memory.reclaimable_bytes, as::bytes);
}

template <typename Io>
void fields(Io& io, Of<Io, RedundantTask>& task) {
  io.nullable_if_set("cpu", task.cpu, as::object);
  io.nullable_if_set("memory", task.memory, as::object);
}

inline constexpr std::array kMoveKinds{LimitMove::Kind::reclaim, LimitMove::Kind::preempt,
                                       LimitMove::Kind::recall, LimitMove::Kind::restore,
                                       LimitMove::Kind::release};

template <typename Io>
void fields(Io& io, Of<Io, LimitMove>& move) {
  io.required("kind", move.kind, as::one_of(kMoveKinds, to_string));
  io.required("workload", move.workload, as::name);
  io.required("amount", move.amount, as::object);
  io.optional("reason", move.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, Relocation>& relocation) {
  io.required("workload", relocation.workload, as::name);
  io.required("lacks", relocation.lacks, as::object);
}

template <typename Io>
void fields(Io& io, Of<Io, StragglerFindings>& findings) {
  io.required("tasks", findings.tasks, as::by_name(as::object));
  io.required("redundant", findings.redundant, as::by_name(as::object));
  io.optional("keeping", findings.keeping, as::by_name(as::text));
  io.if_set("room", findings.room, as::by_name(as::object));
  io.required("idle", findings.idle, as::object);
  io.required("needed", findings.needed, as::object);
  io.optional("moves", findings.moves, as::list(as::object));
  io.required("relocate", findings.relocate, as::list(as::object));
}

}  // namespace berth::model
