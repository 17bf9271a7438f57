// SPDX-License-Identifier: Apache-2.0
// The fields of a snapshot. The changes of a trace have most of them too.
#pragma once

#include "model/bounds.h"
#include "model/by_domain_json.h"
#include "model/json_fields.h"
#include "model/oversell_json.h"
#include "model/pending_json.h"
#include "model/snapshot.h"
#include "model/workload_json.h"

#include <array>
#include <vector>

#include <fmt/core.h>

namespace berth::model {

inline constexpr std::array kOwnedHows{OwnedHow::isolated, OwnedHow::partition, OwnedHow::exclusive,
                                       OwnedHow::kubelet, OwnedHow::runtime};

inline constexpr as::number kLoad{0, 1e9};
inline constexpr as::number kCoefficient{0, 1e6};
inline constexpr as::number kShare{0, 1e6};  // far above what makes sense
inline constexpr as::number kDuration_s{0, kLastTime_s};
inline constexpr as::integer kNumber{0, 1'000'000'000};  // of stages, jobs

template <typename Io>
void fields(Io& io, Of<Io, InterferenceModel>& model) {
  // A fitted intercept may fall a little below 0; the other two are constrained not to.
  io.required("b0", model.b0, as::number{-kCoefficient.highest, kCoefficient.highest});
  io.required("k1", model.k1, kCoefficient);
  io.required("k2", model.k2, kCoefficient);
}

template <typename Io>
void fields(Io& io, Of<Io, ServiceProfile>& profile) {
  io.nullable_if_set("pressure", profile.pressure, as::fraction);
  io.nullable_if_set("model", profile.model, as::object);
  io.nullable_if_set("learned", profile.learned, as::line);
}

template <typename Io>
void fields(Io& io, Of<Io, SparkTask>& task) {
  io.required("executor", task.executor, as::name);
  io.optional("input_bytes", task.input_bytes, as::bytes);
  io.required("duration_s", task.duration_s, kDuration_s);
  io.if_set("kept_by", task.kept_by, as::list(as::name));
}

template <typename Io>
void fields(Io& io, Of<Io, SparkStage>& stage) {
  io.required("id", stage.id, kNumber);
  io.optional("parents", stage.parents, as::list(kNumber));
  io.required("partitions", stage.partitions, as::integer{1, kNumber.highest});
  io.optional("shuffle_write_bytes", stage.shuffle_write_bytes, as::bytes);
  io.if_set("cached", stage.cached, as::flag);
  io.if_set("job", stage.job, kNumber, -1);
  io.optional("tasks", stage.tasks, as::list(as::object));
}

template <typename Io>
void fields(Io& io, Of<Io, SparkRunningTask>& task) {
  io.required("executor", task.executor, as::name);
  io.optional("elapsed_s", task.elapsed_s, kDuration_s);
}

template <typename Io>
void fields(Io& io, Of<Io, SparkApp>& app) {
  io.required("id", app.id, as::name);
  io.optional("calculated_time_s", app.calculated_time_s, kDuration_s);
  io.optional("shuffle_service", app.shuffle_service, as::flag);
  io.optional("migration", app.migration, as::flag);
  io.optional("stages", app.stages, as::list(as::object));
  io.optional("running", app.running, as::list(as::object));
}

template <typename Io>
void fields(Io& io, Of<Io, UsedShare>& share) {
  io.required("time", share.time, as::time);
  io.required("cpu", share.cpu, kShare);
  io.required("memory", share.memory, kShare);
}

template <typename Io>
void fields(Io& io, Of<Io, RecentUse>& recent) {
  io.required("samples", recent.samples, as::integer{1, 1'000'000});
  io.required("cpu", recent.cpu, kShare);
  io.required("memory", recent.memory, kShare);
  io.required("load1", recent.load1, kLoad);
}

template <typename Io>
void fields(Io& io, Of<Io, OwnedCpus>& owned) {
  io.nullable("owner", owned.owner, as::or_null(as::name));
  io.required("cpus", owned.cpus, as::cpulist);
  io.required("how", owned.how, as::one_of(kOwnedHows, to_string));
}

template <typename Io>
void fields(Io& io, Of<Io, MemoryState>& memory) {
  io.optional("total_bytes", memory.total_bytes, as::bytes);
  io.optional("available_bytes", memory.available_bytes, as::bytes, memory.total_bytes);
  io.optional("psi_full_avg10", memory.psi_full_avg10, as::percent);
  if constexpr (Io::kReads) {
    if (memory.available_bytes > memory.total_bytes)
      io.fail("available_bytes",
              fmt::format("{} is above total_bytes, {}", memory.available_bytes, memory.total_bytes));
  }
}

// How a reading is written: [time, bytes].
struct AsMemoryReading {
  void read(const JsonValue& value, MemoryReading& reading) const;
  void write(JsonWriter& out, const MemoryReading& reading) const;
};
// A limited number of them, each later than the one before.
struct AsMemoryReadings {
  void read(const JsonValue& value, std::vector<MemoryReading>& readings) const;
  void write(JsonWriter& out, const std::vector<MemoryReading>& readings) const;
};
// A limited number of seconds.
struct AsDurations {
  void read(const JsonValue& value, std::vector<double>& durations_s) const;
  void write(JsonWriter& out, const std::vector<double>& durations_s) const;
};

template <typename Io>
void fields(Io& io, Of<Io, BestEffortGroup>& group) {
  io.required("id", group.id, as::name);
  io.nullable_if_set("held", group.held, as::one_of(kLowPriorities, to_string));
  io.nullable_if_set("owner", group.owner, as::one_of(kLowPriorities, to_string));
  io.nullable_if_set("changed_at", group.changed_at, as::time);
  io.if_set("fixed", group.fixed, as::flag);
}

template <typename Io>
void fields(Io& io, Of<Io, OtherGroup>& group) {
  io.required("id", group.id, as::name);
  io.nullable_if_set("held", group.held, as::cpulist);
  io.nullable_if_set("allowed_cpus", group.allowed_cpus, as::cpulist);
  io.nullable_if_set("changed_at", group.changed_at, as::time);
  io.nullable_if_set("left_alone", group.left_alone, as::text);
}

// The members before "topology".
template <typename Io>
void past_fields(Io& io, Of<Io, Snapshot>& snapshot) {
  io.optional("host", snapshot.host, as::line);
  io.optional("time", snapshot.time, as::time);
  io.nullable_if_set("straggler_seen_at", snapshot.straggler_seen_at, as::time);
  io.nullable_if_set("eviction_ended_at", snapshot.eviction_ended_at, as::time);
  io.if_set("spark_evicted", snapshot.spark_evicted, as::by_name(as::time));
  io.if_set("memory_readings", snapshot.memory_readings, AsMemoryReadings());
  io.if_set("eviction_durations", snapshot.eviction_durations_s, AsDurations());
  io.optional("load1", snapshot.load1, kLoad);
  io.nullable_if_set("advertised", snapshot.advertised, as::object);
  io.if_set("used_shares", snapshot.used_shares, as::list(as::object));
  io.nullable_if_set("recent_use", snapshot.recent_use, as::object);
  io.if_set("best_effort_cores", snapshot.best_effort_cores, AsByDomain(as::object));
}

// And those after it.
template <typename Io>
void present_fields(Io& io, Of<Io, Snapshot>& snapshot, double samples_since = -1) {
  io.if_set("owned_cpus", snapshot.owned_cpus, as::list(as::object));
  io.optional("memory", snapshot.memory, as::object);
  io.optional("services", snapshot.services, as::by_name(as::object));
  io.required("workloads", snapshot.workloads, WorkloadsSince{samples_since});
  io.if_set("best_effort_groups", snapshot.groups, as::list(as::object));
  io.if_set("others", snapshot.others, as::list(as::object));
  io.optional("pending", snapshot.pending, as::list(as::object));
  io.optional("spark_apps", snapshot.spark_apps, as::list(as::object));
}

}  // namespace berth::model
