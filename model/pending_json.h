// SPDX-License-Identifier: Apache-2.0
// The fields of a workload that asks to be admitted, both in a snapshot's list and as a request of its own.
#pragma once

#include "model/glob.h"
#include "model/json.h"
#include "model/json_fields.h"
#include "model/snapshot.h"
#include "model/workload_json.h"

namespace berth::model {

inline void check_gpus(FieldReader& io, const PendingWorkload& pending) {
  constexpr const char* kNoGpus = "it says something of the GPUs, and no gpus are asked for";
  if (pending.gpus == 0 && pending.gpu_memory_bytes > 0) io.fail("gpu_memory_bytes", kNoGpus);
  if (!pending.gpu_model) return;
  if (pending.gpus == 0) io.fail("gpu_model", kNoGpus);
  if (io.failed()) return;
  if (const auto checked = check_glob(*pending.gpu_model); !checked)
    io.fail("gpu_model", checked.error().message());
}

template <typename Io>
void gpu_fields(Io& io, Of<Io, PendingWorkload>& pending) {
  io.optional("gpus", pending.gpus, as::integer{0, kMaxCpu + 1});
  io.optional("gpu_memory_bytes", pending.gpu_memory_bytes, as::bytes);
  io.nullable("gpu_model", pending.gpu_model, as::name);
  io.optional("gpu_exclusive", pending.gpu_exclusive, as::flag);
  if constexpr (Io::kReads) check_gpus(io, pending);
}

template <typename Io>
void fields(Io& io, Of<Io, PendingWorkload>& pending) {
  io.required("id", pending.id, as::name);
  service_field(io, pending);
  io.required("class", pending.workload_class, as::one_of(kWorkloadClasses, to_string));
  io.nullable("vcpus", pending.vcpus, as::integer{1, kMaxCpu + 1});
  io.nullable_if_set("isolation", pending.isolation, as::one_of(kIsolations, to_string));
  io.optional("memory_request_bytes", pending.memory_request_bytes, as::bytes);
  if (Io::kReads || pending.room_cpu_cores > 0 || pending.room_memory_bytes > 0) {
    io.optional("room", pending, as::part([](auto& room, auto& it) {
                  room.optional("cpu", it.room_cpu_cores, as::number{0, kMaxCpu + 1});
                  room.optional("memory_bytes", it.room_memory_bytes, as::bytes);
                }));
  }
  io.if_set("told_gpus", pending.told_gpus, as::list(as::name));
  io.if_set("told_cpus", pending.told_cpus, as::cpulist);
  if (Io::kReads || pending.gpus != 0) gpu_fields(io, pending);
}

}  // namespace berth::model
