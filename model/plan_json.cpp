// SPDX-License-Identifier: Apache-2.0
#include "model/borrowing_json.h"
#include "model/interference_json.h"
#include "model/json.h"
#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/number.h"
#include "model/oversell_json.h"
#include "model/placement_json.h"
#include "model/spark_json.h"
#include "model/straggler_json.h"

#include <cfloat>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr const char* kSchema = "berth.plan/1";

constexpr std::array kSteps{EvictionStep::decommission, EvictionStep::terminate, EvictionStep::kill};
constexpr std::array kWaitCauses{WaitCause::quota, WaitCause::vcpus, WaitCause::best_effort,
                                 WaitCause::unknown};
constexpr std::array kWarningCauses{WarningCause::use, WarningCause::quota, WarningCause::place};
constexpr std::array kOrigins{ModelOrigin::fallback, ModelOrigin::given, ModelOrigin::fitted};

double read_figure(const JsonValue& value) { return value.number(-DBL_MAX, DBL_MAX); }

const AttributeRow* row_of_kind(std::string_view kind) {
  for (const Attribute attribute : kAttributes) {
    const AttributeRow& row = row_of(attribute);
    if (kind == row.set || kind == row.give_back) return &row;
  }
  return nullptr;
}

// Sets an attribute, or gives it back. A limit that is null is none.
Action::What read_change(JsonObject& object, const AttributeRow& row, std::string_view kind,
                         std::string workload) {
  const auto set = [&](AttributeValue value) { return Set{std::move(workload), std::move(value)}; };
  switch (row.attribute) {
    case Attribute::cpus:
      if (kind == row.set) return set(object.required(row.member).cpulist());
      break;
    case Attribute::cpu_quota: {
      const auto cores = object.nullable(row.member);
      return set(CpuQuota{cores ? std::optional(cores->positive_number(DBL_MAX)) : std::nullopt});
    }
    case Attribute::memory_high: {
      const auto bytes = object.nullable(row.member);
      return set(MemoryHigh{bytes ? std::optional(bytes->bytes()) : std::nullopt});
    }
    case Attribute::memory_nodes:
      if (const auto nodes = object.nullable(row.member)) return set(MemoryNodes{nodes->cpulist()});
      break;
    case Attribute::cpu_idle:
      if (object.required(row.member).boolean()) return set(IdlePriority());
      break;
  }
  return GiveBack{std::move(workload), row.attribute};
}

Action read_action(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  Action action;
  const JsonValue kind_value = object.required("kind");
  const std::string kind = kind_value.name();
  const auto workload = [&object] { return object.required("workload").name(); };
  if (const AttributeRow* row = row_of_kind(kind)) {
    action.what = read_change(object, *row, kind, workload());
  } else if (kind == "evict") {
    Evict evict{.workload = workload()};
    evict.how = object.required("how").choice(kSteps, to_string);
    evict.frees_bytes = object.required("frees_bytes").bytes();
    if (const auto grace = object.optional("grace_s")) evict.grace_s = grace->number(0, DBL_MAX);
    action.what = std::move(evict);
  } else if (kind == "advertise") {
    Advertise advertise;
    advertise.resource = object.required("resource").choice(kResources, to_string);
    advertise.factor = object.required("factor").number(0, DBL_MAX);
    advertise.capacity = object.required("capacity").number(0, DBL_MAX);
    advertise.state = object.required("state").choice(kStates, to_string);
    action.what = advertise;
  } else {
    kind_value.fail(fmt::format("there is no action {}", in_quotes(kind)));
  }
  action.policy = object.required("policy").line();
  action.decision = object.required("decision").line();
  action.reason = object.required("reason").text();
  return action;
}

std::vector<WorkloadFinding> read_findings(const JsonValue& value) {
  std::vector<WorkloadFinding> findings;
  value.each([&findings](const JsonValue& element) {
    JsonObject object(element);
    object.ignore_unknown();
    WorkloadFinding& finding = findings.emplace_back();
    finding.workload = object.required("workload").name();
    finding.reason = object.required("reason").text();
  });
  return findings;
}

PlacedInstance read_instance(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  PlacedInstance placed;
  placed.cpus = object.required("cpus").cpulist();
  placed.cpu_sc = read_figure(object.required("cpu_sc"));
  placed.cpu_ss = read_figure(object.required("cpu_ss"));
  placed.score = read_figure(object.required("score"));
  placed.model = object.required("model").choice(kOrigins, to_string);
  if (const auto pressure = object.optional("pressure")) placed.pressure = pressure->fraction();
  if (const auto reason = object.optional("model_reason")) placed.model_reason = reason->text();
  return placed;
}

WaitingInstance read_waiting(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  WaitingInstance waiting;
  waiting.runq_latency_s = read_figure(object.required("runq_latency_s"));
  waiting.cause = object.required("cause").choice(kWaitCauses, to_string);
  if (const auto vcpus = object.nullable("vcpus")) waiting.vcpus = vcpus->small_integer(1, kMaxCpu + 1);
  if (const auto quieter = object.optional("quieter")) waiting.quieter = quieter->cpulist();
  waiting.reason = object.required("reason").text();
  return waiting;
}

ServiceWarning read_warning(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  ServiceWarning warning;
  warning.workload = object.required("workload").name();
  warning.cause = object.required("cause").choice(kWarningCauses, to_string);
  if (const auto vcpus = object.nullable("vcpus")) warning.vcpus = vcpus->small_integer(1, kMaxCpu + 1);
  warning.reason = object.required("reason").text();
  return warning;
}

int read_domain_id(const std::string& name, const JsonValue& value) {
  const int id = to_number<int>(name).value_or(-1);
  // Accept only the spelling that to_json writes. Else "1" and "01" would be one domain.
  if (id < 0 || std::to_string(id) != name)
    value.fail(fmt::format("{} is not the number of a domain", in_quotes(name)));
  return id;
}

InterferenceFindings read_interference(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  InterferenceFindings findings;
  findings.weighting = object.required("weighting").line();
  findings.search = object.required("search").line();
  findings.score_node = read_figure(object.required("score_node"));
  if (const auto unpinned = object.nullable("score_unpinned"))
    findings.score_unpinned = read_figure(*unpinned);
  if (const auto bound = object.nullable("lower_bound")) findings.lower_bound = read_figure(*bound);
  if (const auto gap = object.nullable("gap")) findings.gap = read_figure(*gap);
  if (const auto reason = object.optional("search_reason")) findings.search_reason = reason->text();
  if (const auto moved = object.optional("moved"))
    moved->each([&findings](const JsonValue& id) { findings.moved.push_back(id.name()); });
  object.required("domains").each_member([&findings](const std::string& name, const JsonValue& score) {
    findings.domains.emplace(read_domain_id(name, score), read_figure(score));
  });
  object.required("instances").each_member([&findings](const std::string& id, const JsonValue& instance) {
    findings.instances.emplace(id, read_instance(instance));
  });
  findings.unplaceable = read_findings(object.required("unplaceable"));
  if (const auto given = object.optional("best_effort")) {
    JsonObject pool(*given);
    pool.ignore_unknown();
    findings.best_effort.cpus = pool.required("cpus").cpulist();
    findings.best_effort.utilisation = pool.required("utilisation").fraction();
  }
  if (const auto unconfined = object.optional("unconfined")) findings.unconfined = read_findings(*unconfined);
  if (const auto waiting = object.optional("waiting")) {
    waiting->each_member([&findings](const std::string& id, const JsonValue& instance) {
      findings.waiting.emplace(id, read_waiting(instance));
    });
  }
  if (const auto warnings = object.optional("warnings"))
    warnings->each([&findings](const JsonValue& it) { findings.warnings.push_back(read_warning(it)); });
  if (const auto absent = object.optional("absent_reserved")) findings.absent_reserved = absent->cpulist();
  if (const auto borrowing = object.optional("borrowing")) findings.borrowing = read_borrowing(*borrowing);
  return findings;
}

// Members between "workload" and "policy", by kind.
struct ActionMembers {
  JsonWriter& out;
  void operator()(const Set& action) const {
    out.key(row_of(attribute_of(action.value)).member);
    std::visit(*this, action.value);
  }
  void operator()(const CpuSet& cpus) const { out.value(cpus); }
  void operator()(const CpuQuota& quota) const { out.value(quota.cores); }
  void operator()(const MemoryHigh& limit) const { out.value(limit.bytes); }
  void operator()(const MemoryNodes& bound) const { out.value(bound.nodes); }
  void operator()(const IdlePriority&) const { out.value(true); }
  void operator()(const GiveBack& action) const {
    if (action.attribute == Attribute::cpus) return;
    out.key(row_of(action.attribute).member);
    if (action.attribute == Attribute::cpu_idle) {
      out.value(false);
    } else {
      out.null();
    }
  }
  void operator()(const Evict& action) const {
    out.member("how", to_string(action.how)).member("frees_bytes", action.frees_bytes);
    out.member("grace_s", action.grace_s);
  }
  void operator()(const Advertise& action) const {
    out.member("resource", to_string(action.resource)).member("factor", action.factor);
    out.member("capacity", action.capacity).member("state", to_string(action.state));
  }
};

void write_action(JsonWriter& out, const Action& action) {
  out.begin_object().member("kind", action.kind());
  if (const std::string* workload = action.workload()) out.member("workload", *workload);
  std::visit(ActionMembers{out}, action.what);
  out.member("policy", action.policy).member("decision", action.decision).member("reason", action.reason);
  out.end_object();
}

void write_findings(JsonWriter& out, const std::vector<WorkloadFinding>& findings) {
  out.begin_array();
  for (const WorkloadFinding& finding : findings)
    out.begin_object().member("workload", finding.workload).member("reason", finding.reason).end_object();
  out.end_array();
}

}  // namespace

void write_warnings(JsonWriter& out, const std::vector<ServiceWarning>& warnings) {
  out.begin_array();
  for (const ServiceWarning& warning : warnings) {
    out.begin_object().member("workload", warning.workload).member("cause", to_string(warning.cause));
    out.member("vcpus", warning.vcpus).member("reason", warning.reason).end_object();
  }
  out.end_array();
}

void write_waiting(JsonWriter& out, const WaitingInstance& waiting) {
  out.begin_object().member("runq_latency_s", waiting.runq_latency_s);
  out.member("cause", to_string(waiting.cause));
  out.member("vcpus", waiting.vcpus > 0 ? std::optional(waiting.vcpus) : std::nullopt);
  if (!waiting.quieter.empty()) out.member("quieter", waiting.quieter);
  out.member("reason", waiting.reason).end_object();
}

namespace {

void write_interference(JsonWriter& out, const InterferenceFindings& findings) {
  out.begin_object().member("weighting", findings.weighting).member("search", findings.search);
  out.member("score_node", findings.score_node).member("score_unpinned", findings.score_unpinned);
  out.member("lower_bound", findings.lower_bound).member("gap", findings.gap);
  if (!findings.search_reason.empty()) out.member("search_reason", findings.search_reason);
  if (!findings.moved.empty()) {
    out.key("moved").begin_array();
    for (const std::string& id : findings.moved) out.value(id);
    out.end_array();
  }
  out.key("domains").begin_object();
  for (const auto& [id, score] : findings.domains) out.member(std::to_string(id), score);
  out.end_object().key("instances").begin_object();
  for (const auto& [id, placed] : findings.instances) {
    out.key(id).begin_object().member("cpus", placed.cpus).member("cpu_sc", placed.cpu_sc);
    out.member("cpu_ss", placed.cpu_ss).member("score", placed.score).member("pressure", placed.pressure);
    out.member("model", to_string(placed.model)).member("model_reason", placed.model_reason).end_object();
  }
  out.end_object().key("unplaceable");
  write_findings(out, findings.unplaceable);
  out.key("best_effort").begin_object().member("cpus", findings.best_effort.cpus);
  out.member("utilisation", findings.best_effort.utilisation).end_object().key("unconfined");
  write_findings(out, findings.unconfined);
  out.key("waiting").begin_object();
  for (const auto& [id, waiting] : findings.waiting) write_waiting(out.key(id), waiting);
  out.end_object();
  write_warnings(out.key("warnings"), findings.warnings);
  if (!findings.absent_reserved.empty()) out.member("absent_reserved", findings.absent_reserved);
  if (findings.borrowing) write_borrowing(out.key("borrowing"), *findings.borrowing);
  out.end_object();
}

}  // namespace

Result<Plan> parse_plan(std::string_view text) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  context.ignore_unknown();
  const JsonValue document(context, *root);
  JsonObject object(document);
  object.ignore_unknown();
  object.require_schema(kSchema);
  Plan plan;
  if (const auto host = object.optional("host")) plan.host = host->line();
  if (const auto time = object.optional("time")) plan.time = time->epoch();
  object.required("actions").each(
      [&plan](const JsonValue& action) { plan.actions.push_back(read_action(action)); });
  if (const auto given = object.optional("findings")) {
    JsonObject findings(*given);
    findings.ignore_unknown();
    if (const auto interference = findings.optional("interference"))
      plan.findings.interference = read_interference(*interference);
    if (const auto straggler = findings.optional("straggler"))
      as::object.read(*straggler, plan.findings.straggler.emplace());
    if (const auto spark = findings.optional("spark")) plan.findings.spark = read_spark(*spark);
    if (const auto oversell = findings.optional("oversell"))
      plan.findings.oversell = read_oversell(*oversell);
    if (const auto placement = findings.optional("placement"))
      plan.findings.placement = read_placement(*placement);
  }
  if (context.failed()) return fail(*context.error());
  return plan;
}

std::string to_json(const Plan& plan) {
  JsonWriter out(plan.wall_ahead_s);
  out.begin_object().member("schema", kSchema).member("host", plan.host).time("time", plan.time);
  out.key("actions").begin_array();
  for (const Action& action : plan.actions) write_action(out, action);
  out.end_array().key("findings").begin_object();
  if (plan.findings.interference) {
    out.key("interference");
    write_interference(out, *plan.findings.interference);
  }
  if (plan.findings.straggler) {
    as::object.write(out.key("straggler"), *plan.findings.straggler);
  }
  if (plan.findings.spark) write_spark(out.key("spark"), *plan.findings.spark);
  if (plan.findings.oversell) {
    out.key("oversell");
    write_oversell(out, *plan.findings.oversell);
  }
  if (plan.findings.placement) {
    out.key("placement");
    write_placement(out, *plan.findings.placement);
  }
  return out.end_object().end_object().take();
}

std::string spark_json(const Plan& plan) {
  JsonWriter out(plan.wall_ahead_s);
  out.begin_object().member("schema", "berth.spark/1").member("host", plan.host).time("time", plan.time);
  write_spark(out.key("spark"), plan.findings.spark.value_or(SparkFindings()));
  return out.end_object().take();
}

}  // namespace berth::model
