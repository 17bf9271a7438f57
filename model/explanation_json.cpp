// SPDX-License-Identifier: Apache-2.0
// Explanations are written, and never read here.
#include "model/eviction_json.h"
#include "model/explanation.h"
#include "model/interference_json.h"
#include "model/json.h"
#include "model/json_fields.h"
#include "model/snapshot_json.h"
#include "model/straggler_json.h"
#include "model/workload_json.h"

#include <vector>

namespace berth::model {

static void fields(FieldWriter& io, const PinExplanation& pin) {
  const PlacedInstance& instance = pin.instance;
  io.required("cpus", instance.cpus, as::cpulist);
  io.required("score", instance.score, as::figure);
  io.required("cpu_sc", instance.cpu_sc, as::figure);
  io.required("cpu_ss", instance.cpu_ss, as::figure);
  io.required("k1", pin.coefficients.k1, as::figure);
  io.required("k2", pin.coefficients.k2, as::figure);
  io.required("model", instance.model, as::one_of(kOrigins, to_string));
  io.required("model_reason", instance.model_reason, as::text);
  io.required("pressure", instance.pressure, as::fraction);
  io.required("pressure_source", pin.pressure_source, as::text);
  io.required("search_reason", pin.search_reason, as::text);
}

static void fields(FieldWriter& io, const Payer& payer) {
  io.required("workload", payer.workload, as::name);
  io.required("held", payer.held, as::object);
  io.required("amount", payer.amount, as::object);
}

static void fields(FieldWriter& io, const EvictionExplanation& eviction) {
  io.required("position", eviction.position, as::count);
  io.required("candidates", eviction.candidates, as::count);
  io.required("victim", eviction.victim, as::flag);
  io.nullable("spared", eviction.spared, as::text);
  io.required("memory", eviction.memory, as::text);
  io.nullable("candidate", eviction.candidate, as::object);
}

static void fields(FieldWriter& io, const ApplicationExplanation& application) {
  io.required("id", application.id, as::name);
  io.required("delta", application.delta, as::amount);
  io.required("figures", application.figures, as::object);
  io.required("workloads", application.workloads, as::list(as::name));
}

namespace {

// The value that an action sets is in the plan, and in its reason.
struct AsReason {
  void write(JsonWriter& out, const Action& action) const {
    out.begin_object().member("kind", action.kind()).member("policy", action.policy);
    out.member("decision", action.decision).member("reason", action.reason).end_object();
  }
};

template <typename T>
struct Limit {
  const std::optional<T>& present;
  const std::optional<T>& original;
  const std::optional<HeldLimit>& held;
};

template <typename T>
void fields(FieldWriter& io, const Limit<T>& limit) {
  io.nullable("present", limit.present, as::amount);
  io.nullable("original", limit.original, as::amount);
  io.nullable("held", limit.held, as::object);
}

void write_limits(FieldWriter& io, const Workload& workload) {
  const OriginalLimits original =
      workload.original.value_or(OriginalLimits{workload.cpu_quota_cores, workload.memory_high_bytes});
  io.required("cpu_quota",
              Limit<double>{workload.cpu_quota_cores, original.cpu_quota_cores, workload.held_cpu},
              as::object);
  io.required(
      "memory_high_bytes",
      Limit<std::uint64_t>{workload.memory_high_bytes, original.memory_high_bytes, workload.held_memory},
      as::object);
}

}  // namespace

static void fields(FieldWriter& io, const WorkloadExplanation& explained) {
  const Workload& workload = explained.workload;
  io.required("id", workload.id, as::name);
  io.required("pending", explained.pending, as::flag);
  io.required("service", workload.service, as::name);
  io.required("class", workload.workload_class, as::one_of(kWorkloadClasses, to_string));
  io.nullable("vcpus", workload.vcpus, as::count);
  io.required("priority", workload.priority, as::count);
  io.required("cpus", workload.cpus, as::cpulist);
  io.nullable("pinned_at", workload.pinned_at, as::time);
  io.nullable("mean_cores", explained.mean_cores, as::amount);
  io.nullable("memory_bytes", explained.memory_bytes, as::bytes);
  io.nullable("left_alone", explained.left_alone, as::text);
  io.required("gpus", workload.gpus, as::list(as::name));
  io.required("limits", workload, as::part(write_limits));
  io.nullable("pin", explained.pin, as::object);
  io.nullable("isolation", explained.isolation, as::one_of(kIsolations, to_string));
  io.nullable("shared", explained.shared, as::object);
  io.nullable("unplaceable", explained.unplaceable, as::text);
  io.nullable("unconfined", explained.unconfined, as::text);
  io.required("warnings", explained.warnings, as::list(as::object));
  io.nullable("waiting", explained.waiting, as::object);
  io.nullable("group", explained.group, as::object);
  io.nullable("pool", explained.pool, as::object);
  io.nullable("lifted", explained.lifted, as::text);
  io.nullable("bursting", explained.bursting, as::text);
  io.nullable("task", explained.task, as::object);
  io.nullable("redundant", explained.redundant, as::object);
  io.nullable("keeping", explained.keeping, as::text);
  io.nullable("lacks", explained.lacks, as::object);
  io.nullable("idle", explained.idle, as::object);
  io.required("moves", explained.moves, as::list(as::object));
  io.required("payers", explained.payers, as::list(as::object));
  io.nullable("eviction", explained.eviction, as::object);
  io.nullable("application", explained.application, as::object);
  io.required("actions", explained.actions, as::list(AsReason()));
}

static void fields(FieldWriter& io, const DecisionExplanation& decision) {
  io.required("id", decision.id, as::name);
  io.nullable("planned", decision.planned, AsReason());
  io.nullable("planned_at", decision.planned_at, as::time);
  io.required("present", decision.present, as::flag);
  io.required("entries", std::vector<std::string>(), as::list(as::text));  // the caller has them
}

static void fields(FieldWriter& io, const Explanation& explanation) {
  io.schema("berth.explain/1");
  io.required("host", explanation.host, as::line);
  io.required("time", explanation.time, as::time);
  io.nullable("decision", explanation.decision, as::object);
  io.nullable("workload", explanation.workload, as::object);
  io.nullable("application", explanation.application, as::object);
  io.nullable_if_set("other", explanation.other, as::object);
}

std::string to_json(const Explanation& explanation) {
  return document_text(explanation, explanation.wall_ahead_s);
}

}  // namespace berth::model
