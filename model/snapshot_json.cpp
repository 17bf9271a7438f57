// SPDX-License-Identifier: Apache-2.0
#include "model/snapshot_json.h"

#include "model/bounds.h"
#include "model/json.h"
#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/oversell_json.h"
#include "model/pending_json.h"
#include "model/snapshot_checks.h"
#include "model/topology_json.h"
#include "model/usage_json.h"
#include "model/workload_json.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr const char* kSchema = "berth.snapshot/1";

constexpr double kMaxLoad = 1e9;
constexpr double kMaxCoefficient = 1e6;
constexpr double kMaxShare = 1e6;  // far above what makes sense
constexpr int kMaxRecentSamples = 1000000;
constexpr int kMaxCount = 1'000'000'000;  // of partitions; of stage ids

ServiceProfile read_profile(const JsonValue& value) {
  JsonObject object(value);
  ServiceProfile profile;
  if (const auto pressure = object.nullable("pressure")) profile.pressure = pressure->fraction();
  if (const auto given = object.nullable("model")) {
    JsonObject coefficients(*given);
    InterferenceModel model;
    // A fitted intercept may fall a little below 0; the other two are constrained not to.
    model.b0 = coefficients.required("b0").number(-kMaxCoefficient, kMaxCoefficient);
    model.k1 = coefficients.required("k1").number(0, kMaxCoefficient);
    model.k2 = coefficients.required("k2").number(0, kMaxCoefficient);
    profile.model = model;
  }
  if (const auto learned = object.nullable("learned")) profile.learned = learned->line();
  return profile;
}

SparkStage read_stage(const JsonValue& value) {
  JsonObject object(value);
  SparkStage stage;
  stage.id = object.required("id").small_integer(0, kMaxCount);
  if (const auto parents = object.optional("parents"))
    parents->each([&stage](const JsonValue& id) { stage.parents.push_back(id.small_integer(0, kMaxCount)); });
  stage.partitions = object.required("partitions").small_integer(1, kMaxCount);
  if (const auto written = object.optional("shuffle_write_bytes"))
    stage.shuffle_write_bytes = written->bytes();
  if (const auto cached = object.optional("cached")) stage.cached = cached->boolean();
  if (const auto job = object.optional("job")) stage.job = job->small_integer(0, kMaxCount);
  if (const auto tasks = object.optional("tasks"))
    tasks->each([&stage](const JsonValue& element) {
      JsonObject task(element);
      SparkTask& read = stage.tasks.emplace_back();
      read.executor = task.required("executor").name();
      if (const auto input = task.optional("input_bytes")) read.input_bytes = input->bytes();
      read.duration_s = task.required("duration_s").number(0, kLastTime_s);
      if (const auto keepers = task.optional("kept_by"))
        keepers->each([&read](const JsonValue& keeper) { read.kept_by.push_back(keeper.name()); });
    });
  return stage;
}

SparkApp read_app(const JsonValue& value) {
  JsonObject object(value);
  SparkApp app;
  app.id = object.required("id").name();
  if (const auto calculated = object.optional("calculated_time_s"))
    app.calculated_time_s = calculated->number(0, kLastTime_s);
  if (const auto service = object.optional("shuffle_service")) app.shuffle_service = service->boolean();
  if (const auto migration = object.optional("migration")) app.migration = migration->boolean();
  if (const auto stages = object.optional("stages"))
    stages->each([&app](const JsonValue& stage) { app.stages.push_back(read_stage(stage)); });
  if (const auto running = object.optional("running"))
    running->each([&app](const JsonValue& element) {
      JsonObject task(element);
      SparkRunningTask& read = app.running.emplace_back();
      read.executor = task.required("executor").name();
      if (const auto elapsed = task.optional("elapsed_s")) read.elapsed_s = elapsed->number(0, kLastTime_s);
    });
  return app;
}

UsedShare read_used_share(const JsonValue& value) {
  JsonObject object(value);
  UsedShare share;
  share.time = object.required("time").epoch();
  share.cpu = object.required("cpu").number(0, kMaxShare);
  share.memory = object.required("memory").number(0, kMaxShare);
  return share;
}

RecentUse read_recent_use(const JsonValue& value) {
  JsonObject object(value);
  RecentUse recent;
  recent.samples = object.required("samples").small_integer(1, kMaxRecentSamples);
  recent.cpu = object.required("cpu").number(0, kMaxShare);
  recent.memory = object.required("memory").number(0, kMaxShare);
  recent.load1 = object.required("load1").number(0, kMaxLoad);
  return recent;
}

std::vector<MemoryReading> read_memory_readings(const JsonValue& value) {
  std::vector<MemoryReading> readings;
  value.each([&readings](const JsonValue& element) {
    const MemoryReading reading = read_memory_reading(element);
    if (readings.size() == kMostMemoryReadings) {
      element.fail(fmt::format("there are more than {} readings", kMostMemoryReadings));
    } else if (!readings.empty() && reading.time <= readings.back().time) {
      element.fail("not later than the reading before");
    }
    readings.push_back(reading);
  });
  return readings;
}

std::vector<double> read_durations(const JsonValue& value) {
  std::vector<double> durations;
  value.each([&durations](const JsonValue& element) {
    if (durations.size() == kMostEvictionDurations)
      element.fail(fmt::format("there are more than {} durations", kMostEvictionDurations));
    durations.push_back(element.number(0, kLastTime_s));
  });
  return durations;
}

constexpr std::array kOwnedHows{OwnedHow::isolated, OwnedHow::partition, OwnedHow::exclusive,
                                OwnedHow::kubelet, OwnedHow::runtime};

OwnedCpus read_owned_cpus(const JsonValue& value) {
  JsonObject object(value);
  OwnedCpus owned;
  if (const auto owner = object.nullable("owner")) owned.owner = owner->name();
  owned.cpus = object.required("cpus").cpulist();
  owned.how = object.required("how").choice(kOwnedHows, to_string);
  return owned;
}

MemoryState read_memory(const JsonValue& value) {
  JsonObject object(value);
  MemoryState memory;
  if (const auto total = object.optional("total_bytes")) memory.total_bytes = total->bytes();
  const auto available = object.optional("available_bytes");
  memory.available_bytes = available ? available->bytes() : memory.total_bytes;
  if (const auto psi = object.optional("psi_full_avg10")) memory.psi_full_avg10 = psi->number(0, 100);
  if (memory.available_bytes > memory.total_bytes)
    object.context().fail(
        object.path_of("available_bytes"),
        fmt::format("{} is above total_bytes, {}", memory.available_bytes, memory.total_bytes));
  return memory;
}

}  // namespace

MemoryReading read_memory_reading(const JsonValue& value) {
  MemoryReading reading;
  std::size_t members = 0;
  value.each([&](const JsonValue& member) {
    if (members == 0) reading.time = member.epoch();
    if (members == 1) reading.bytes = member.bytes();
    ++members;
  });
  if (members != 2) value.fail("not a time and an amount of memory");
  return reading;
}

void read_load(JsonObject& object, Snapshot& snapshot) {
  if (const auto host = object.optional("host")) snapshot.host = host->line();
  if (const auto time = object.optional("time")) snapshot.time = time->epoch();
  if (const auto seen = object.nullable("straggler_seen_at")) snapshot.straggler_seen_at = seen->epoch();
  if (const auto ended = object.nullable("eviction_ended_at")) snapshot.eviction_ended_at = ended->epoch();
  if (const auto evicted = object.optional("spark_evicted"))
    evicted->each_member([&snapshot](const std::string& app, const JsonValue& time) {
      snapshot.spark_evicted.emplace(app, time.epoch());
    });
  if (const auto readings = object.optional("memory_readings"))
    snapshot.memory_readings = read_memory_readings(*readings);
  if (const auto durations = object.optional("eviction_durations"))
    snapshot.eviction_durations_s = read_durations(*durations);
  if (const auto advertised = object.nullable("advertised"))
    snapshot.advertised = read_advertised(*advertised);
  if (const auto shares = object.optional("used_shares"))
    shares->each(
        [&snapshot](const JsonValue& share) { snapshot.used_shares.push_back(read_used_share(share)); });
  if (const auto recent = object.nullable("recent_use")) snapshot.recent_use = read_recent_use(*recent);
  if (const auto load1 = object.optional("load1")) snapshot.load1 = load1->number(0, kMaxLoad);
  if (const auto owned = object.optional("owned_cpus"))
    owned->each([&snapshot](const JsonValue& it) { snapshot.owned_cpus.push_back(read_owned_cpus(it)); });
  if (const auto memory = object.optional("memory")) snapshot.memory = read_memory(*memory);
  if (const auto services = object.optional("services"))
    services->each_member([&snapshot](const std::string& name, const JsonValue& profile) {
      snapshot.services.emplace(name, read_profile(profile));
    });
  object.required("workloads").each([&snapshot](const JsonValue& workload) {
    snapshot.workloads.push_back(read_workload(workload));
  });
  if (const auto pending = object.optional("pending"))
    pending->each(
        [&snapshot](const JsonValue& workload) { snapshot.pending.push_back(read_pending(workload)); });
  if (const auto apps = object.optional("spark_apps"))
    apps->each([&snapshot](const JsonValue& app) { snapshot.spark_apps.push_back(read_app(app)); });
}

namespace {

void write_app(JsonWriter& out, const SparkApp& app) {
  out.begin_object().member("id", app.id).member("calculated_time_s", app.calculated_time_s);
  out.member("shuffle_service", app.shuffle_service).member("migration", app.migration);
  out.key("stages").begin_array();
  for (const SparkStage& stage : app.stages) {
    out.begin_object().member("id", stage.id).key("parents").begin_array();
    for (const int parent : stage.parents) out.value(parent);
    out.end_array().member("partitions", stage.partitions);
    out.member("shuffle_write_bytes", stage.shuffle_write_bytes);
    if (stage.cached) out.member("cached", true);
    if (stage.job >= 0) out.member("job", stage.job);
    out.key("tasks").begin_array();
    for (const SparkTask& task : stage.tasks) {
      out.begin_object().member("executor", task.executor).member("input_bytes", task.input_bytes);
      out.member("duration_s", task.duration_s);
      if (!task.kept_by.empty()) {
        out.key("kept_by").begin_array();
        for (const std::string& keeper : task.kept_by) out.value(keeper);
        out.end_array();
      }
      out.end_object();
    }
    out.end_array().end_object();
  }
  out.end_array().key("running").begin_array();
  for (const SparkRunningTask& task : app.running)
    out.begin_object().member("executor", task.executor).member("elapsed_s", task.elapsed_s).end_object();
  out.end_array().end_object();
}

}  // namespace

void write_services(JsonWriter& out, const std::map<std::string, ServiceProfile>& services) {
  out.begin_object();
  for (const auto& [name, profile] : services) {
    out.key(name).begin_object().member_if("pressure", profile.pressure);
    if (profile.model) {
      out.key("model").begin_object().member("b0", profile.model->b0);
      out.member("k1", profile.model->k1).member("k2", profile.model->k2).end_object();
    }
    out.member_if("learned", profile.learned);
    out.end_object();
  }
  out.end_object();
}

void write_spark_evicted(JsonWriter& out, const std::map<std::string, double>& evicted) {
  out.begin_object();
  for (const auto& [app, time] : evicted) out.time(app, time);
  out.end_object();
}

void write_memory_reading(JsonWriter& out, const MemoryReading& reading) {
  out.begin_array().time_value(reading.time).value(reading.bytes).end_array();
}

void write_memory_readings(JsonWriter& out, std::span<const MemoryReading> readings) {
  out.begin_array();
  for (const MemoryReading& reading : readings) write_memory_reading(out, reading);
  out.end_array();
}

void write_eviction_durations(JsonWriter& out, std::span<const double> durations) {
  out.begin_array();
  for (const double duration : durations) out.value(duration);
  out.end_array();
}

void write_used_shares(JsonWriter& out, const std::vector<UsedShare>& shares) {
  out.begin_array();
  for (const UsedShare& share : shares) {
    out.begin_object().time("time", share.time).member("cpu", share.cpu);
    out.member("memory", share.memory).end_object();
  }
  out.end_array();
}

void write_recent_use(JsonWriter& out, const RecentUse& recent) {
  out.begin_object().member("samples", recent.samples).member("cpu", recent.cpu);
  out.member("memory", recent.memory).member("load1", recent.load1).end_object();
}

void write_owned_cpus(JsonWriter& out, const std::vector<OwnedCpus>& all) {
  out.begin_array();
  for (const OwnedCpus& owned : all) {
    out.begin_object().key("owner");
    if (owned.owner.empty()) {
      out.null();
    } else {
      out.value(owned.owner);
    }
    out.member("cpus", owned.cpus).member("how", to_string(owned.how)).end_object();
  }
  out.end_array();
}

void write_memory(JsonWriter& out, const MemoryState& memory) {
  out.begin_object().member("total_bytes", memory.total_bytes);
  out.member("available_bytes", memory.available_bytes);
  out.member("psi_full_avg10", memory.psi_full_avg10).end_object();
}

void write_pending(JsonWriter& out, const std::vector<PendingWorkload>& pending) {
  out.begin_array();
  for (const PendingWorkload& workload : pending) {
    out.begin_object();
    write_pending_members(out, workload);
    out.end_object();
  }
  out.end_array();
}

void write_apps(JsonWriter& out, const std::vector<SparkApp>& apps) {
  out.begin_array();
  for (const SparkApp& app : apps) write_app(out, app);
  out.end_array();
}

namespace {

// `taken` are the samples that `text` lacks.
Result<ParsedSnapshot> read_snapshot(std::string_view text, const TopologyResolver& resolve,
                                     TextWithoutUsage& taken) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  const JsonValue document(context, *root);
  std::optional<Topology> topology;
  ParsedSnapshot parsed;
  {
    JsonObject object(document);
    object.require_schema(kSchema);
    const JsonValue member = object.required("topology");
    if (!context.failed()) {
      JsonObject topology_object(member);
      topology = read_topology(topology_object, resolve);
    }
    if (topology) parsed.snapshot.topology = *std::move(topology);
    if (!context.failed()) read_load(object, parsed.snapshot);
  }
  if (!context.failed()) {
    for (auto& [workload, usage] : taken.usage)
      parsed.snapshot.workloads.at(workload).usage = std::move(usage);
    check_snapshot(parsed.snapshot, context);
  }
  if (context.failed()) return fail(*context.error());
  std::sort(parsed.snapshot.workloads.begin(), parsed.snapshot.workloads.end(),
            [](const Workload& a, const Workload& b) { return a.id < b.id; });
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
  const double since_here = since < 0 ? since : std::max(0.0, since - snapshot.wall_ahead_s);
  std::vector<const Workload*> workloads;
  workloads.reserve(snapshot.workloads.size());
  for (const Workload& workload : snapshot.workloads) workloads.push_back(&workload);
  std::stable_sort(workloads.begin(), workloads.end(),
                   [](const Workload* a, const Workload* b) { return a->id < b->id; });

  JsonWriter out(snapshot.wall_ahead_s);
  out.begin_object().member("schema", kSchema).member("host", snapshot.host).time("time", snapshot.time);
  out.time_if("straggler_seen_at", snapshot.straggler_seen_at);
  out.time_if("eviction_ended_at", snapshot.eviction_ended_at);
  if (!snapshot.spark_evicted.empty()) write_spark_evicted(out.key("spark_evicted"), snapshot.spark_evicted);
  if (!snapshot.memory_readings.empty())
    write_memory_readings(out.key("memory_readings"), snapshot.memory_readings);
  if (!snapshot.eviction_durations_s.empty())
    write_eviction_durations(out.key("eviction_durations"), snapshot.eviction_durations_s);
  out.member("load1", snapshot.load1);
  if (snapshot.advertised != Advertised()) {
    out.key("advertised");
    write_advertised(out, snapshot.advertised);
  }
  if (!snapshot.used_shares.empty()) write_used_shares(out.key("used_shares"), snapshot.used_shares);
  if (snapshot.recent_use) write_recent_use(out.key("recent_use"), *snapshot.recent_use);
  out.key("topology").begin_object();
  write_topology(out, snapshot.topology);
  out.end_object();
  if (!snapshot.owned_cpus.empty()) write_owned_cpus(out.key("owned_cpus"), snapshot.owned_cpus);
  out.key("memory");
  write_memory(out, snapshot.memory);
  write_services(out.key("services"), snapshot.services);
  out.key("workloads").begin_array();
  for (const Workload* workload : workloads) write_workload(out, *workload, since_here);
  out.end_array().key("pending");
  write_pending(out, snapshot.pending);
  write_apps(out.key("spark_apps"), snapshot.spark_apps);
  return out.end_object().take();
}

}  // namespace berth::model
