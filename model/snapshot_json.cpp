// SPDX-License-Identifier: Apache-2.0
#include "model/snapshot_json.h"

#include "model/json.h"
#include "model/snapshot_checks.h"
#include "model/topology_json.h"
#include "model/usage_json.h"

#include <algorithm>
#include <cstddef>

namespace berth::model {

void AsMemoryReading::read(const JsonValue& value, MemoryReading& reading) const {
  std::size_t members = 0;
  value.each([&](const JsonValue& member) {
    if (members == 0) reading.time = member.epoch();
    if (members == 1) reading.bytes = member.bytes();
    ++members;
  });
  if (members != 2) value.fail("not a time and an amount of memory");
}

void AsMemoryReading::write(JsonWriter& out, const MemoryReading& reading) const {
  out.begin_array().time_value(reading.time).value(reading.bytes).end_array();
}

void AsMemoryReadings::read(const JsonValue& value, std::vector<MemoryReading>& readings) const {
  value.each([&readings](const JsonValue& element) {
    MemoryReading reading;
    AsMemoryReading().read(element, reading);
    if (readings.size() == kMostMemoryReadings) {
      element.fail(fmt::format("there are more than {} readings", kMostMemoryReadings));
    } else if (!readings.empty() && reading.time <= readings.back().time) {
      element.fail("not later than the reading before");
    }
    readings.push_back(reading);
  });
}

void AsMemoryReadings::write(JsonWriter& out, const std::vector<MemoryReading>& readings) const {
  as::list(AsMemoryReading()).write(out, readings);
}

void AsDurations::read(const JsonValue& value, std::vector<double>& durations_s) const {
  value.each([&durations_s](const JsonValue& element) {
    if (durations_s.size() == kMostEvictionDurations)
      element.fail(fmt::format("there are more than {} durations", kMostEvictionDurations));
    kDuration_s.read(element, durations_s.emplace_back());
  });
}

void AsDurations::write(JsonWriter& out, const std::vector<double>& durations_s) const {
  as::list(kDuration_s).write(out, durations_s);
}

namespace {

constexpr const char* kSchema = "berth.snapshot/1";

// `taken` are the samples that `text` lacks.
Result<ParsedSnapshot> read_snapshot(std::string_view text, const TopologyResolver& resolve,
                                     TextWithoutUsage& taken) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  ParsedSnapshot parsed;
  {
    FieldReader io(JsonValue(context, *root));
    io.schema(kSchema);
    const JsonValue topology = io.object().required("topology");
    if (!context.failed()) {
      JsonObject object(topology);
      if (auto read = read_topology(object, resolve)) parsed.snapshot.topology = *std::move(read);
    }
    past_fields(io, parsed.snapshot);
    present_fields(io, parsed.snapshot);
  }
  if (!context.failed()) {
    for (auto& [workload, usage] : taken.usage)
      parsed.snapshot.workloads.at(workload).usage = std::move(usage);
    check_snapshot(parsed.snapshot, context);
  }
  if (context.failed()) return fail(*context.error());
  std::sort(parsed.snapshot.workloads.begin(), parsed.snapshot.workloads.end(),
            [](const Workload& a, const Workload& b) { return a.id < b.id; });
  std::sort(parsed.snapshot.groups.begin(), parsed.snapshot.groups.end(),
            [](const BestEffortGroup& a, const BestEffortGroup& b) { return a.id < b.id; });
  std::sort(parsed.snapshot.others.begin(), parsed.snapshot.others.end(),
            [](const OtherGroup& a, const OtherGroup& b) { return a.id < b.id; });
  parsed.warnings = context.take_warnings();
  return parsed;
}

}  // namespace

Result<ParsedSnapshot> parse_snapshot(std::string_view text, const TopologyResolver& resolve) {
  if (auto taken = take_usage(text)) {
    auto parsed = read_snapshot(taken->text, resolve, *taken);
    if (parsed) return parsed;
  }
  // Only the whole text tells the fault and its place.
  TextWithoutUsage nothing;
  return read_snapshot(text, resolve, nothing);
}

std::string to_json(const Snapshot& snapshot) { return to_json_since(snapshot, -1); }

std::string to_json_since(const Snapshot& snapshot, double since) {
  JsonWriter out(snapshot.wall_ahead_s);
  out.begin_object();
  FieldWriter io(out);
  io.schema(kSchema);
  past_fields(io, snapshot);
  write_topology(out.key("topology").begin_object(), snapshot.topology);
  out.end_object();
  present_fields(io, snapshot, since < 0 ? since : std::max(0.0, since - snapshot.wall_ahead_s));
  return out.end_object().take();
}

}  // namespace berth::model
