// SPDX-License-Identifier: Apache-2.0
// The part of the snapshot document that is about one workload, and the parts that other documents show in
// the same form. Only the *_json.cpp files of this directory include it.
#pragma once

#include "model/json_fields.h"
#include "model/workload.h"

#include <array>
#include <vector>

namespace berth::model {

inline constexpr std::array kWorkloadClasses{WorkloadClass::latency_sensitive, WorkloadClass::best_effort};

// An element of "workloads"; errors go to the value's context.
Workload read_workload(const JsonValue& value);
// With the samples later than `since` (of the snapshot's clock) only.
void write_workload(JsonWriter& out, const Workload& workload, double since = -1);

// The figures that most ticks change, except the samples: cpu_throttled, cpu_pressure, cpi,
// llc_misses_per_s, cpu_time_s and cache_bytes. An absent one becomes nullopt.
void read_readings(JsonObject& object, Workload& workload);
void write_readings(JsonWriter& out, const Workload& workload);

// "usage", with the samples later than `since` only.
void write_samples(JsonWriter& out, const UsageWindow& usage, double since);

template <typename Io>
void fields(Io& io, Of<Io, ProgressReport>& report) {
  io.required("time", report.time, as::time);
  io.required("fraction", report.fraction, as::fraction);
}

// {"cause", "since", "changed_at"}
void write_held(JsonWriter& out, const HeldLimit& held);

}  // namespace berth::model
