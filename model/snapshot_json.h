// SPDX-License-Identifier: Apache-2.0
// Parts of the snapshot document that the changes of a trace have too. Only the *_json.cpp files of this
// directory include it.
#pragma once

#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/snapshot.h"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace berth::model {

// Everything but the topology. An absent member leaves what `snapshot` has; "workloads" is required.
void read_load(JsonObject& object, Snapshot& snapshot);

// [time, bytes]
MemoryReading read_memory_reading(const JsonValue& value);
void write_memory_reading(JsonWriter& out, const MemoryReading& reading);

// Each writes the value of the member that it names.
void write_spark_evicted(JsonWriter& out, const std::map<std::string, double>& evicted);
void write_memory_readings(JsonWriter& out, std::span<const MemoryReading> readings);
void write_eviction_durations(JsonWriter& out, std::span<const double> durations_s);
void write_used_shares(JsonWriter& out, const std::vector<UsedShare>& shares);
void write_recent_use(JsonWriter& out, const RecentUse& recent);
void write_memory(JsonWriter& out, const MemoryState& memory);
void write_services(JsonWriter& out, const std::map<std::string, ServiceProfile>& services);
void write_pending(JsonWriter& out, const std::vector<PendingWorkload>& pending);
void write_apps(JsonWriter& out, const std::vector<SparkApp>& apps);

}  // namespace berth::model
