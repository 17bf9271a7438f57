// SPDX-License-Identifier: Apache-2.0
#include "model/explanation.h"
#include "model/json.h"
#include "model/json_writer.h"

namespace berth::model {

namespace {

const char* word_of(HeldCause cause) {
  switch (cause) {
    case HeldCause::extended:
      return "extended";
    case HeldCause::reclaimed:
      return "reclaimed";
    case HeldCause::preempted:
      return "preempted";
  }
  return "";
}

const char* word_of(LimitMove::Kind kind) {
  switch (kind) {
    case LimitMove::Kind::reclaim:
      return "reclaim";
    case LimitMove::Kind::preempt:
      return "preempt";
    case LimitMove::Kind::restore:
      return "restore";
    case LimitMove::Kind::release:
      return "release";
  }
  return "";
}

template <typename T>
void write_limit(JsonWriter& out, const char* name, const std::optional<T>& present,
                 const std::optional<OriginalLimits>& originals, std::optional<T> OriginalLimits::*original,
                 const std::optional<HeldLimit>& held) {
  out.key(name).begin_object().member("present", present);
  out.key("original");
  if (originals) {
    out.value(*originals.*original);
  } else {
    out.value(present);
  }
  out.key("held");
  if (held) {
    out.begin_object()
        .member("cause", word_of(held->cause))
        .member("since", held->since)
        .member("changed_at", held->changed_at)
        .end_object();
  } else {
    out.null();
  }
  out.end_object();
}

void write_resources(JsonWriter& out, const char* name, const Resources& amount) {
  out.key(name)
      .begin_object()
      .member("cpu", amount.cpu_cores)
      .member("memory", amount.memory_bytes)
      .end_object();
}

void write_pin(JsonWriter& out, const PinExplanation& pin) {
  const PlacedInstance& instance = pin.instance;
  out.begin_object()
      .member("cpus", instance.cpus)
      .member("score", instance.score)
      .member("cpu_sc", instance.cpu_sc)
      .member("cpu_ss", instance.cpu_ss)
      .member("k1", pin.coefficients.k1)
      .member("k2", pin.coefficients.k2)
      .member("model", to_string(instance.model))
      .member("model_reason", instance.model_reason)
      .member("pressure", instance.pressure)
      .member("pressure_source", pin.pressure_source)
      .end_object();
}

// This and write_redundant() as in the plan's findings.
void write_task(JsonWriter& out, const StragglerTask& task) {
  out.begin_object()
      .member("straggler", task.straggler)
      .member("reason", task.reason)
      .member("v1", task.v1)
      .member("v2", task.v2)
      .member("finish", task.finish)
      .member("deadline", task.deadline)
      .member("growth", task.growth);
  out.key("samples").begin_array();
  for (const ProgressReport& sample : task.samples) {
    out.begin_object().member("time", sample.time).member("fraction", sample.fraction).end_object();
  }
  out.end_array()
      .member("allocation", task.allocation_cores)
      .member("allocation_memory_bytes", task.allocation_bytes)
      .member("extension", task.extension.cpu_cores)
      .member("extension_memory_bytes", task.extension.memory_bytes);
  write_resources(out, "granted", task.granted);
  out.member("vcpus", task.vcpus).end_object();
}

void write_redundant(JsonWriter& out, const RedundantTask& task) {
  out.begin_object();
  if (task.cpu) {
    out.key("cpu")
        .begin_object()
        .member("utilisation", task.cpu->utilisation)
        .member("reclaimable", task.cpu->reclaimable_cores)
        .end_object();
  }
  if (task.memory) {
    out.key("memory")
        .begin_object()
        .member("utilisation", task.memory->utilisation)
        .member("reclaimable", task.memory->reclaimable_bytes)
        .end_object();
  }
  out.end_object();
}

// The value that an action sets is in the plan, and in its reason.
void write_action(JsonWriter& out, const Action& action) {
  out.begin_object()
      .member("kind", action.kind())
      .member("policy", action.policy)
      .member("decision", action.decision)
      .member("reason", action.reason)
      .end_object();
}

template <typename T, typename Write>
void write_or_null(JsonWriter& out, const char* name, const std::optional<T>& maybe, Write write) {
  out.key(name);
  if (maybe) {
    write(out, *maybe);
  } else {
    out.null();
  }
}

void write_workload(JsonWriter& out, const WorkloadExplanation& explained) {
  const Workload& workload = explained.workload;
  out.begin_object()
      .member("id", workload.id)
      .member("pending", explained.pending)
      .member("service", workload.service)
      .member("class", to_string(workload.workload_class))
      .member("vcpus", workload.vcpus)
      .member("priority", workload.priority)
      .member("cpus", workload.cpus)
      .member("pinned_at", workload.pinned_at)
      .member("mean_cores", explained.mean_cores)
      .member("memory_bytes", explained.memory_bytes)
      .member("unmanaged", explained.unmanaged);
  out.key("limits").begin_object();
  write_limit(out, "cpu_quota", workload.cpu_quota_cores, workload.original, &OriginalLimits::cpu_quota_cores,
              workload.held_cpu);
  write_limit(out, "memory_high_bytes", workload.memory_high_bytes, workload.original,
              &OriginalLimits::memory_high_bytes, workload.held_memory);
  out.end_object();
  write_or_null(out, "pin", explained.pin, write_pin);
  out.member("unplaceable", explained.unplaceable).member("unconfined", explained.unconfined);
  write_or_null(out, "pool", explained.pool, [](JsonWriter& to, const BestEffortPool& pool) {
    to.begin_object().member("cpus", pool.cpus).member("utilisation", pool.utilisation).end_object();
  });
  write_or_null(out, "task", explained.task, write_task);
  write_or_null(out, "redundant", explained.redundant, write_redundant);
  const auto write_amount = [](JsonWriter& to, const Resources& amount) {
    to.begin_object().member("cpu", amount.cpu_cores).member("memory", amount.memory_bytes).end_object();
  };
  write_or_null(out, "lacks", explained.lacks, write_amount);
  write_or_null(out, "idle", explained.idle, write_amount);
  out.key("moves").begin_array();
  for (const LimitMove& move : explained.moves) {
    out.begin_object().member("kind", word_of(move.kind)).member("workload", move.workload);
    write_resources(out, "amount", move.amount);
    out.member("reason", move.reason).end_object();
  }
  out.end_array().key("actions").begin_array();
  for (const Action& action : explained.actions) write_action(out, action);
  out.end_array().end_object();
}

}  // namespace

std::string to_json(const Explanation& explanation) {
  JsonWriter out;
  out.begin_object()
      .member("schema", "berth.explain/1")
      .member("host", explanation.host)
      .member("time", explanation.time);
  write_or_null(out, "decision", explanation.decision,
                [](JsonWriter& to, const DecisionExplanation& decision) {
                  to.begin_object().member("id", decision.id);
                  write_or_null(to, "planned", decision.planned, write_action);
                  to.key("entries").begin_array().end_array().end_object();
                });
  write_or_null(out, "workload", explanation.workload, write_workload);
  out.end_object();
  return out.take();
}

}  // namespace berth::model
