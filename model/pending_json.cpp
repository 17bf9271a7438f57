// SPDX-License-Identifier: Apache-2.0
#include "model/pending_json.h"

#include "model/glob.h"
#include "model/json.h"
#include "model/workload_json.h"

namespace berth::model {

void read_pending_members(JsonObject& object, PendingWorkload& pending) {
  const auto service = object.optional("service");
  pending.service = service ? service->name() : pending.id;
  if (const auto vcpus = object.nullable("vcpus")) pending.vcpus = vcpus->small_integer(1, kMaxCpu + 1);
  if (const auto memory = object.optional("memory_request_bytes"))
    pending.memory_request_bytes = memory->bytes();
  if (const auto gpus = object.optional("gpus")) pending.gpus = gpus->small_integer(0, kMaxCpu + 1);
  const auto needs_gpus = [&pending](const JsonValue& value) {
    if (pending.gpus == 0) value.fail("it says something of the GPUs, and no gpus are asked for");
  };
  if (const auto memory = object.optional("gpu_memory_bytes")) {
    pending.gpu_memory_bytes = memory->bytes();
    if (pending.gpu_memory_bytes > 0) needs_gpus(*memory);
  }
  if (const auto model = object.nullable("gpu_model")) {
    pending.gpu_model = model->name();
    needs_gpus(*model);
    if (object.context().failed()) return;
    if (const auto checked = check_glob(*pending.gpu_model); !checked) model->fail(checked.error().message());
  }
  if (const auto exclusive = object.optional("gpu_exclusive")) pending.gpu_exclusive = exclusive->boolean();
}

PendingWorkload read_pending(const JsonValue& value) {
  JsonObject object(value);
  PendingWorkload pending;
  pending.id = object.required("id").name();
  pending.workload_class = object.required("class").choice(kWorkloadClasses, to_string);
  read_pending_members(object, pending);
  if (const auto room = object.optional("room")) {
    JsonObject made(*room);
    if (const auto cores = made.optional("cpu")) pending.room_cpu_cores = cores->number(0, kMaxCpu + 1);
    if (const auto bytes = made.optional("memory_bytes")) pending.room_memory_bytes = bytes->bytes();
  }
  if (const auto told = object.optional("told_gpus")) {
    told->each([&pending](const JsonValue& id) { pending.told_gpus.push_back(id.name()); });
  }
  if (const auto told = object.optional("told_cpus")) pending.told_cpus = told->cpulist();
  return pending;
}

void write_pending_members(JsonWriter& out, const PendingWorkload& pending) {
  out.member("id", pending.id);
  if (!pending.service.empty()) out.member("service", pending.service);
  out.member("class", to_string(pending.workload_class)).member("vcpus", pending.vcpus);
  out.member("memory_request_bytes", pending.memory_request_bytes);
  if (pending.room_cpu_cores > 0 || pending.room_memory_bytes > 0) {
    out.key("room").begin_object().member("cpu", pending.room_cpu_cores);
    out.member("memory_bytes", pending.room_memory_bytes).end_object();
  }
  if (!pending.told_gpus.empty()) {
    out.key("told_gpus").begin_array();
    for (const std::string& id : pending.told_gpus) out.value(id);
    out.end_array();
  }
  if (!pending.told_cpus.empty()) out.member("told_cpus", pending.told_cpus);
  if (pending.gpus == 0) return;
  out.member("gpus", pending.gpus).member("gpu_memory_bytes", pending.gpu_memory_bytes);
  out.member("gpu_model", pending.gpu_model).member("gpu_exclusive", pending.gpu_exclusive);
}

}  // namespace berth::model
