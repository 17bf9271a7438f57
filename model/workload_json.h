// SPDX-License-Identifier: Apache-2.0
// The fields of a workload. Plans and explanations show some parts of it in the same form.
#pragma once

#include "model/attribute_json.h"
#include "model/bounds.h"
#include "model/json.h"
#include "model/json_fields.h"
#include "model/learning.h"
#include "model/workload.h"

#include <array>
#include <cstdint>

#include <fmt/core.h>

namespace berth::model {

inline constexpr std::array kWorkloadClasses{WorkloadClass::latency_sensitive, WorkloadClass::best_effort};
inline constexpr std::array kIsolations{Isolation::shared, Isolation::vcpus, Isolation::cores};
inline constexpr std::array kRoles{SparkRole::executor, SparkRole::driver};
inline constexpr std::array kHeldCauses{HeldCause::extended, HeldCause::lent, HeldCause::preempted,
                                        HeldCause::lifted};

inline const char* role_name(SparkRole role) { return role == SparkRole::executor ? "executor" : "driver"; }

template <typename Io>
void fields(Io& io, Of<Io, ProgressReport>& report) {
  io.required("time", report.time, as::time);
  io.required("fraction", report.fraction, as::fraction);
}

template <typename Io>
void fields(Io& io, Of<Io, SparkIdentity>& spark) {
  io.required("app", spark.app, as::name);
  io.required("role", spark.role, as::one_of(kRoles, role_name));
  io.nullable("executor", spark.executor, as::name);
  if constexpr (Io::kReads) {
    if (spark.role == SparkRole::executor && !spark.executor)
      io.fail("executor", "missing; the role executor needs its id");
  }
}

template <typename Io>
void fields(Io& io, Of<Io, OriginalLimits>& original) {
  io.nullable("cpu_quota", original.cpu_quota_cores, as::positive{kMaxQuotaCores});
  io.nullable("memory_high_bytes", original.memory_high_bytes, as::bytes);
}

template <typename Io>
void fields(Io& io, Of<Io, HeldLimit>& held) {
  io.required("cause", held.cause, as::one_of(kHeldCauses, to_string));
  io.required("since", held.since, as::time);
  io.optional("changed_at", held.changed_at, as::time, held.since);
  if constexpr (Io::kReads) {
    if (held.changed_at < held.since)
      io.fail("changed_at", fmt::format("{} is before since, {}", held.changed_at, held.since));
  }
}

template <typename Io>
void fields(Io& io, Of<Io, FixedLimits>& fixed) {
  io.optional("cpu", fixed.cpu, as::flag);
  io.optional("memory", fixed.memory, as::flag);
  io.optional("life", fixed.life, as::flag);
  io.if_set("memory_nodes", fixed.memory_nodes, as::flag);
  for (const Attribute attribute : kAttributes) {
    if (!is_other(attribute)) continue;
    bool is_fixed = fixed.others.contains(attribute);
    io.if_set(row_of(attribute).member, is_fixed, as::flag);
    if constexpr (Io::kReads) {
      if (is_fixed) fixed.others.insert(attribute);
    }
  }
}

// Each is a member of its own, by the name in its row.
template <typename Io>
void fields(Io& io, Of<Io, std::map<Attribute, AttributeValue>>& others) {
  for (const Attribute attribute : kAttributes) {
    if (!is_other(attribute)) continue;
    const auto known = others.find(attribute);
    auto value = known != others.end() ? std::optional(known->second) : std::nullopt;
    io.nullable_if_set(row_of(attribute).member, value, AsAttribute{attribute});
    if constexpr (Io::kReads) {
      if (value) others.insert_or_assign(attribute, *value);
    }
  }
}

// A workload without a service is one of its own, named by its id. `workload`: it, or a pending one.
template <typename Io, typename AnyWorkload>
void service_field(Io& io, AnyWorkload& workload) {
  io.if_set("service", workload.service, as::name);
  if constexpr (Io::kReads) {
    if (workload.service.empty()) workload.service = workload.id;
  }
}

// The figures that most ticks change, except the samples.
template <typename Io>
void reading_fields(Io& io, Of<Io, Workload>& workload) {
  io.nullable_if_set("cpu_throttled", workload.cpu_throttled, as::fraction);
  io.nullable_if_set("cpu_lacked", workload.cpu_lacked, as::amount);
  io.nullable_if_set("cpu_pressure", workload.cpu_pressure, as::fraction);
  io.nullable_if_set("cpi", workload.cpi, as::number{0, kMostResponse});
  io.nullable_if_set("llc_misses_per_s", workload.llc_misses_per_s, as::number{0, kMostMisses});
  io.nullable_if_set("cpu_time_s", workload.cpu_time_s, as::number{0, 1e15});
  io.nullable_if_set("cache_bytes", workload.cache_bytes, as::bytes);
}

// All but the samples.
template <typename Io>
void fields(Io& io, Of<Io, Workload>& workload) {
  io.required("id", workload.id, as::name);
  service_field(io, workload);
  io.required("class", workload.workload_class, as::one_of(kWorkloadClasses, to_string));
  io.nullable("vcpus", workload.vcpus, as::integer{1, kMaxCpu + 1});
  io.nullable_if_set("isolation", workload.isolation, as::one_of(kIsolations, to_string));
  io.optional("memory_request_bytes", workload.memory_request_bytes, as::bytes);
  io.optional("cpus", workload.cpus, as::cpulist);
  io.if_set("shares", workload.shares, as::flag);
  io.if_set("home", workload.home, as::cpulist);
  io.if_set("told_cpus", workload.told_cpus, as::cpulist);
  io.if_set("memory_nodes", workload.memory_nodes, as::cpulist);
  fields(io, workload.others);
  io.nullable_if_set("allowed_cpus", workload.allowed_cpus, as::cpulist);
  io.nullable("cpu_quota", workload.cpu_quota_cores, as::positive{kMaxQuotaCores});
  io.nullable("memory_high_bytes", workload.memory_high_bytes, as::bytes);
  io.optional("priority", workload.priority, as::integer{-kMaxPriority, kMaxPriority});
  io.optional("evictable", workload.evictable, as::flag);
  io.optional("created", workload.created, as::time);
  io.if_set("force", workload.force, as::flag);
  io.if_set("user", workload.user, as::integer{0, UINT32_MAX});
  io.nullable_if_set("leaf_since", workload.leaf_since, as::time);
  io.nullable("deadline", workload.deadline, as::time);
  io.nullable_if_set("pinned_at", workload.pinned_at, as::time);
  io.nullable("spark", workload.spark, as::object);
  io.nullable_if_set("spared", workload.spared, as::text);
  io.optional("gpus", workload.gpus, as::list(as::name));
  io.nullable("original", workload.original, as::object);
  if (Io::kReads || workload.held_cpu || workload.held_memory) {
    io.nullable("held", workload, as::part([](auto& held, auto& it) {
                  held.nullable_if_set("cpu", it.held_cpu, as::object);
                  held.nullable_if_set("memory", it.held_memory, as::object);
                }));
  }
  io.nullable_if_set("cpu_period_us", workload.cpu_period_us, as::integer{1000, 1000000});
  io.nullable_if_set("fixed", workload.fixed, as::object);
  io.nullable_if_set("left_alone", workload.left_alone, as::text);
  io.nullable_if_set("straggled_at", workload.straggled_at, as::time);
  io.nullable_if_set("pressed_at", workload.pressed_at, as::time);
  io.nullable_if_set("progressed_at", workload.progressed_at, as::time);
  io.nullable_if_set("evicted_at", workload.evicted_at, as::time);
  reading_fields(io, workload);
  io.if_set("progress", workload.progress, as::list(as::object));
}

// How the samples are written: those later than `since` (of the snapshot's clock) only.
struct SamplesSince {
  double since = -1;

  void read(const JsonValue& value, UsageWindow& usage) const;
  void write(JsonWriter& out, const UsageWindow& usage) const;
};

// The workloads of a snapshot, with such samples, ascending by id.
struct WorkloadsSince {
  double since = -1;

  void read(const JsonValue& value, std::vector<Workload>& workloads) const;
  void write(JsonWriter& out, const std::vector<Workload>& workloads) const;
};

// One of them.
void write_workload(JsonWriter& out, const Workload& workload, double since);

}  // namespace berth::model
