// SPDX-License-Identifier: Apache-2.0
#include "model/borrowing_json.h"
#include "model/explanation.h"
#include "model/interference_json.h"
#include "model/json.h"
#include "model/json_writer.h"
#include "model/spark_json.h"
#include "model/straggler_json.h"
#include "model/workload_json.h"

namespace berth::model {

namespace {

template <typename T>
void write_object(JsonWriter& out, const T& object) {
  as::object.write(out, object);
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
  write_or_null(out, "held", held, write_held);
  out.end_object();
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
      .member("search_reason", pin.search_reason)
      .end_object();
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

void write_payers(JsonWriter& out, const std::vector<Payer>& payers) {
  out.begin_array();
  for (const Payer& payer : payers) {
    out.begin_object().member("workload", payer.workload);
    write_held(out.key("held"), payer.held);
    as::object.write(out.key("amount"), payer.amount);
    out.end_object();
  }
  out.end_array();
}

void write_eviction(JsonWriter& out, const EvictionExplanation& eviction) {
  out.begin_object().member("position", std::uint64_t{eviction.position});
  out.member("candidates", std::uint64_t{eviction.candidates}).member("victim", eviction.victim);
  out.member("spared", eviction.spared).member("memory", eviction.memory);
  write_or_null(out, "candidate", eviction.candidate, write_candidate);
  out.end_object();
}

void write_application(JsonWriter& out, const ApplicationExplanation& application) {
  out.begin_object().member("id", application.id).member("delta", application.delta);
  write_app_figures(out.key("figures"), application.figures);
  out.key("workloads").begin_array();
  for (const std::string& id : application.workloads) out.value(id);
  out.end_array().end_object();
}

void write_explained(JsonWriter& out, const WorkloadExplanation& explained) {
  const Workload& workload = explained.workload;
  out.begin_object()
      .member("id", workload.id)
      .member("pending", explained.pending)
      .member("service", workload.service)
      .member("class", to_string(workload.workload_class))
      .member("vcpus", workload.vcpus)
      .member("priority", workload.priority)
      .member("cpus", workload.cpus)
      .time("pinned_at", workload.pinned_at)
      .member("mean_cores", explained.mean_cores)
      .member("memory_bytes", explained.memory_bytes)
      .member("unmanaged", explained.unmanaged);
  out.key("gpus").begin_array();
  for (const std::string& gpu : workload.gpus) out.value(gpu);
  out.end_array();
  out.key("limits").begin_object();
  write_limit(out, "cpu_quota", workload.cpu_quota_cores, workload.original, &OriginalLimits::cpu_quota_cores,
              workload.held_cpu);
  write_limit(out, "memory_high_bytes", workload.memory_high_bytes, workload.original,
              &OriginalLimits::memory_high_bytes, workload.held_memory);
  out.end_object();
  write_or_null(out, "pin", explained.pin, write_pin);
  out.member("unplaceable", explained.unplaceable).member("unconfined", explained.unconfined);
  write_warnings(out.key("warnings"), explained.warnings);
  write_or_null(out, "waiting", explained.waiting, write_waiting);
  write_or_null(out, "lending", explained.lending, write_lender);
  write_or_null(out, "borrowing", explained.borrowing, write_borrower);
  write_or_null(out, "pool", explained.pool, [](JsonWriter& to, const BestEffortPool& pool) {
    to.begin_object().member("cpus", pool.cpus).member("utilisation", pool.utilisation).end_object();
  });
  write_or_null(out, "task", explained.task, write_object<StragglerTask>);
  write_or_null(out, "redundant", explained.redundant, write_object<RedundantTask>);
  out.member("keeping", explained.keeping);
  write_or_null(out, "lacks", explained.lacks, write_object<Resources>);
  write_or_null(out, "idle", explained.idle, write_object<Resources>);
  as::list(as::object).write(out.key("moves"), explained.moves);
  write_payers(out.key("payers"), explained.payers);
  write_or_null(out, "eviction", explained.eviction, write_eviction);
  write_or_null(out, "application", explained.application, write_application);
  out.key("actions").begin_array();
  for (const Action& action : explained.actions) write_action(out, action);
  out.end_array().end_object();
}

}  // namespace

std::string to_json(const Explanation& explanation) {
  JsonWriter out(explanation.wall_ahead_s);
  out.begin_object()
      .member("schema", "berth.explain/1")
      .member("host", explanation.host)
      .time("time", explanation.time);
  write_or_null(out, "decision", explanation.decision,
                [](JsonWriter& to, const DecisionExplanation& decision) {
                  to.begin_object().member("id", decision.id);
                  write_or_null(to, "planned", decision.planned, write_action);
                  to.time("planned_at", decision.planned_at).member("present", decision.present);
                  to.key("entries").begin_array().end_array().end_object();
                });
  write_or_null(out, "workload", explanation.workload, write_explained);
  write_or_null(out, "application", explanation.application, write_application);
  out.end_object();
  return out.take();
}

}  // namespace berth::model
