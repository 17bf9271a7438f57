// SPDX-License-Identifier: Apache-2.0
#include "model/attribute_json.h"
#include "model/eviction_json.h"
#include "model/interference_json.h"
#include "model/json.h"
#include "model/json_fields.h"
#include "model/oversell_json.h"
#include "model/placement_json.h"
#include "model/straggler_json.h"

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr std::array kSteps{EvictionStep::decommission, EvictionStep::terminate, EvictionStep::kill};

const AttributeRow* row_of_kind(std::string_view kind) {
  for (const Attribute attribute : kAttributes) {
    const AttributeRow& row = row_of(attribute);
    if (kind == row.set || kind == row.give_back) return &row;
  }
  return nullptr;
}

// Sets an attribute, or gives it back. A limit that is null is none.
Action::What read_change(JsonObject& object, const AttributeRow& row, std::string_view kind) {
  std::string workload = object.required("workload").name();
  const auto set = [&](AttributeValue value) { return Set{std::move(workload), std::move(value)}; };
  if (row.attribute == Attribute::cpus) {
    if (kind == row.set) return set(read_value(object.required(row.member), row.attribute));
  } else if (const auto value = object.nullable(row.member)) {
    return set(read_value(*value, row.attribute));
  } else if (row.attribute == Attribute::cpu_quota) {
    return set(CpuQuota());
  } else if (row.attribute == Attribute::memory_high) {
    return set(MemoryHigh());
  }
  return GiveBack{std::move(workload), row.attribute};
}

}  // namespace

template <typename Io>
void fields(Io& io, Of<Io, Evict>& evict) {
  io.required("workload", evict.workload, as::name);
  io.required("how", evict.how, as::one_of(kSteps, to_string));
  io.required("frees_bytes", evict.frees_bytes, as::bytes);
  io.optional("grace_s", evict.grace_s, as::amount);
}

template <typename Io>
void fields(Io& io, Of<Io, Advertise>& advertise) {
  io.required("resource", advertise.resource, as::one_of(kResources, to_string));
  io.required("factor", advertise.factor, as::amount);
  io.required("capacity", advertise.capacity, as::amount);
  io.required("state", advertise.state, as::one_of(kStates, to_string));
}

namespace {

void read_what(FieldReader& io, Action::What& what) {
  const JsonValue kind_value = io.object().required("kind");
  const std::string kind = kind_value.name();
  if (const AttributeRow* row = row_of_kind(kind)) {
    what = read_change(io.object(), *row, kind);
  } else if (kind == "evict") {
    fields(io, what.emplace<Evict>());
  } else if (kind == "advertise") {
    fields(io, what.emplace<Advertise>());
  } else {
    kind_value.fail(fmt::format("there is no action {}", in_quotes(kind)));
  }
}

// Members between "kind" and "policy".
struct WriteWhat {
  FieldWriter& io;
  void operator()(const Set& action) const {
    io.out().member("workload", action.workload).key(row_of(attribute_of(action.value)).member);
    write_value(io.out(), action.value);
  }
  void operator()(const GiveBack& action) const {
    JsonWriter& out = io.out().member("workload", action.workload);
    if (action.attribute == Attribute::cpus) return;
    out.key(row_of(action.attribute).member).null();
  }
  void operator()(const Evict& action) const { fields(io, action); }
  void operator()(const Advertise& action) const { fields(io, action); }
};

}  // namespace

template <typename Io>
void fields(Io& io, Of<Io, Action>& action) {
  if constexpr (Io::kReads) {
    read_what(io, action.what);
  } else {
    io.out().member("kind", action.kind());
    std::visit(WriteWhat{io}, action.what);
  }
  io.required("policy", action.policy, as::line);
  io.required("decision", action.decision, as::line);
  io.required("reason", action.reason, as::text);
}

template <typename Io>
void fields(Io& io, Of<Io, QuotaFindings>& quota) {
  io.optional("lifted", quota.lifted, as::list(as::object));
  io.optional("bursting", quota.bursting, as::list(as::object));
}

template <typename Io>
void fields(Io& io, Of<Io, Findings>& findings) {
  io.if_set("interference", findings.interference, as::object);
  io.if_set("straggler", findings.straggler, as::object);
  io.if_set("eviction", findings.eviction, as::object);
  io.if_set("oversell", findings.oversell, as::object);
  io.if_set("placement", findings.placement, as::object);
  io.if_set("quota", findings.quota, as::object);
}

template <typename Io>
void fields(Io& io, Of<Io, Plan>& plan) {
  io.schema("berth.plan/1");
  io.optional("host", plan.host, as::line);
  io.optional("time", plan.time, as::time);
  io.required("actions", plan.actions, as::list(as::object));
  io.optional("findings", plan.findings, as::object);
}

Result<Plan> parse_plan(std::string_view text) { return parse_document<Plan>(text); }

std::string to_json(const Plan& plan) { return document_text(plan, plan.wall_ahead_s); }

std::string spark_json(const Plan& plan) {
  JsonWriter out(plan.wall_ahead_s);
  out.begin_object().member("schema", "berth.spark/1").member("host", plan.host).time("time", plan.time);
  as::object.write(out.key("spark"), plan.findings.eviction.value_or(EvictionFindings()));
  return out.end_object().take();
}

}  // namespace berth::model
