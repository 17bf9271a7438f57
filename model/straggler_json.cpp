// SPDX-License-Identifier: Apache-2.0
#include "model/straggler_json.h"

#include "model/json.h"
#include "model/workload_json.h"

#include <cfloat>

namespace berth::model {

namespace {

using Kind = LimitMove::Kind;

constexpr std::array kKinds{Kind::reclaim, Kind::preempt, Kind::recall, Kind::restore, Kind::release};

double read_amount(const JsonValue& value) { return value.number(0, DBL_MAX); }
double read_figure(const JsonValue& value) { return value.number(-DBL_MAX, DBL_MAX); }

// An absent member is 0.
Resources read_resources(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  Resources resources;
  if (const auto cpu = object.optional("cpu")) resources.cpu_cores = read_amount(*cpu);
  if (const auto memory = object.optional("memory")) resources.memory_bytes = memory->bytes();
  return resources;
}

StragglerTask read_task(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  StragglerTask task;
  task.straggler = object.required("straggler").boolean();
  if (const auto reason = object.optional("reason")) task.reason = reason->text();
  if (const auto v1 = object.nullable("v1")) task.v1 = read_figure(*v1);
  if (const auto v2 = object.nullable("v2")) task.v2 = read_figure(*v2);
  if (const auto finish = object.nullable("finish")) task.finish = read_figure(*finish);
  if (const auto deadline = object.nullable("deadline")) task.deadline = deadline->epoch();
  if (const auto growth = object.nullable("growth")) task.growth = read_amount(*growth);
  if (const auto samples = object.optional("samples"))
    samples->each([&task](const JsonValue& report) { task.samples.push_back(read_progress_report(report)); });
  if (const auto cores = object.nullable("allocation")) task.allocation_cores = read_amount(*cores);
  if (const auto bytes = object.nullable("allocation_memory_bytes")) task.allocation_bytes = bytes->bytes();
  if (const auto cores = object.optional("extension")) task.extension.cpu_cores = read_amount(*cores);
  if (const auto bytes = object.optional("extension_memory_bytes"))
    task.extension.memory_bytes = bytes->bytes();
  if (const auto granted = object.optional("granted")) task.granted = read_resources(*granted);
  if (const auto vcpus = object.nullable("vcpus")) task.vcpus = vcpus->small_integer(1, kMaxCpu + 1);
  return task;
}

RedundantTask read_redundant(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  RedundantTask task;
  if (const auto given = object.nullable("cpu")) {
    JsonObject cpu(*given);
    cpu.ignore_unknown();
    task.cpu.emplace();
    task.cpu->utilisation = read_amount(cpu.required("utilisation"));
    task.cpu->reclaimable_cores = read_amount(cpu.required("reclaimable"));
  }
  if (const auto given = object.nullable("memory")) {
    JsonObject memory(*given);
    memory.ignore_unknown();
    task.memory.emplace();
    task.memory->utilisation = read_amount(memory.required("utilisation"));
    task.memory->reclaimable_bytes = memory.required("reclaimable").bytes();
  }
  return task;
}

LimitMove read_move(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  LimitMove move;
  move.kind = object.required("kind").choice(kKinds, to_string);
  move.workload = object.required("workload").name();
  move.amount = read_resources(object.required("amount"));
  if (const auto reason = object.optional("reason")) move.reason = reason->text();
  return move;
}

Relocation read_relocation(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  Relocation relocation;
  relocation.workload = object.required("workload").name();
  relocation.lacks = read_resources(object.required("lacks"));
  return relocation;
}

}  // namespace

StragglerFindings read_straggler(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  StragglerFindings findings;
  object.required("tasks").each_member([&findings](const std::string& id, const JsonValue& task) {
    findings.tasks.emplace(id, read_task(task));
  });
  object.required("redundant").each_member([&findings](const std::string& id, const JsonValue& task) {
    findings.redundant.emplace(id, read_redundant(task));
  });
  if (const auto keeping = object.optional("keeping")) {
    keeping->each_member([&findings](const std::string& id, const JsonValue& reason) {
      findings.keeping.emplace(id, reason.text());
    });
  }
  if (const auto room = object.optional("room")) {
    room->each_member([&findings](const std::string& id, const JsonValue& made) {
      findings.room.emplace(id, read_resources(made));
    });
  }
  findings.idle = read_resources(object.required("idle"));
  findings.needed = read_resources(object.required("needed"));
  if (const auto moves = object.optional("moves"))
    moves->each([&findings](const JsonValue& move) { findings.moves.push_back(read_move(move)); });
  object.required("relocate").each([&findings](const JsonValue& relocation) {
    findings.relocate.push_back(read_relocation(relocation));
  });
  return findings;
}

void write_resources(JsonWriter& out, const Resources& resources) {
  out.begin_object().member("cpu", resources.cpu_cores);
  out.member("memory", resources.memory_bytes).end_object();
}

void write_task(JsonWriter& out, const StragglerTask& task) {
  out.begin_object().member("straggler", task.straggler).member("reason", task.reason);
  out.member("v1", task.v1).member("v2", task.v2).time("finish", task.finish);
  out.time("deadline", task.deadline).member("growth", task.growth).key("samples");
  write_progress(out, task.samples);
  out.member("allocation", task.allocation_cores).member("allocation_memory_bytes", task.allocation_bytes);
  out.member("extension", task.extension.cpu_cores);
  out.member("extension_memory_bytes", task.extension.memory_bytes);
  write_resources(out.key("granted"), task.granted);
  out.member("vcpus", task.vcpus).end_object();
}

void write_redundant(JsonWriter& out, const RedundantTask& task) {
  out.begin_object();
  if (task.cpu) {
    out.key("cpu").begin_object().member("utilisation", task.cpu->utilisation);
    out.member("reclaimable", task.cpu->reclaimable_cores).end_object();
  }
  if (task.memory) {
    out.key("memory").begin_object().member("utilisation", task.memory->utilisation);
    out.member("reclaimable", task.memory->reclaimable_bytes).end_object();
  }
  out.end_object();
}

void write_moves(JsonWriter& out, const std::vector<LimitMove>& moves) {
  out.begin_array();
  for (const LimitMove& move : moves) {
    out.begin_object().member("kind", to_string(move.kind)).member("workload", move.workload);
    write_resources(out.key("amount"), move.amount);
    out.member("reason", move.reason).end_object();
  }
  out.end_array();
}

void write_straggler(JsonWriter& out, const StragglerFindings& findings) {
  out.begin_object().key("tasks").begin_object();
  for (const auto& [id, task] : findings.tasks) {
    out.key(id);
    write_task(out, task);
  }
  out.end_object().key("redundant").begin_object();
  for (const auto& [id, task] : findings.redundant) {
    out.key(id);
    write_redundant(out, task);
  }
  out.end_object().key("keeping").begin_object();
  for (const auto& [id, reason] : findings.keeping) out.member(id, reason);
  out.end_object();
  if (!findings.room.empty()) {
    out.key("room").begin_object();
    for (const auto& [id, room] : findings.room) write_resources(out.key(id), room);
    out.end_object();
  }
  write_resources(out.key("idle"), findings.idle);
  write_resources(out.key("needed"), findings.needed);
  write_moves(out.key("moves"), findings.moves);
  out.key("relocate").begin_array();
  for (const Relocation& relocation : findings.relocate) {
    out.begin_object().member("workload", relocation.workload);
    write_resources(out.key("lacks"), relocation.lacks);
    out.end_object();
  }
  out.end_array().end_object();
}

}  // namespace berth::model
