// SPDX-License-Identifier: Apache-2.0
#include "model/json.h"
#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/snapshot_checks.h"
#include "model/topology_json.h"

#include <algorithm>

#include <fmt/format.h>

namespace berth::model {

namespace {

constexpr const char* kSchema = "berth.snapshot/1";

constexpr double kMaxCores = kMaxCpu + 1;
constexpr double kMaxSeconds = 253402300799.0;
constexpr double kMaxMicroseconds = 1e15;
constexpr double kMaxLoad = 1e9;
constexpr double kMaxMpki = 1e6;
constexpr double kMaxCoefficient = 1e6;
constexpr int kMaxPriority = 1'000'000;
constexpr int kMaxCount = 1'000'000'000;  // of partitions; of stage ids

constexpr std::array kClasses{WorkloadClass::latency_sensitive, WorkloadClass::best_effort};
constexpr std::array kRoles{SparkRole::executor, SparkRole::driver};

const char* role_name(SparkRole role) { return role == SparkRole::executor ? "executor" : "driver"; }

UsageSample read_sample(const JsonValue& value) {
  JsonObject object(value);
  UsageSample sample;
  sample.time = object.required("time").epoch();
  if (const auto cpu = object.optional("cpu")) sample.cpu_cores = cpu->number(0, kMaxCores);
  if (const auto memory = object.nullable("memory_bytes")) sample.memory_bytes = memory->bytes();
  if (const auto progress = object.nullable("progress")) sample.progress = progress->fraction();
  if (const auto delay = object.nullable("runq_latency_us"))
    sample.runq_latency_us = delay->number(0, kMaxMicroseconds);
  if (const auto delay = object.nullable("runq_latency_p50_us"))
    sample.runq_latency_p50_us = delay->number(0, kMaxMicroseconds);
  if (const auto mpki = object.nullable("llc_mpki")) sample.llc_mpki = mpki->number(0, kMaxMpki);
  return sample;
}

SparkIdentity read_spark_identity(const JsonValue& value) {
  JsonObject object(value);
  SparkIdentity spark;
  spark.app = object.required("app").name();
  spark.role = object.required("role").choice(kRoles, role_name);
  if (const auto executor = object.nullable("executor")) spark.executor = executor->name();
  if (spark.role == SparkRole::executor && !spark.executor)
    object.context().fail(object.path_of("executor"), "missing; the role executor needs its id");
  return spark;
}

OriginalLimits read_original(const JsonValue& value) {
  JsonObject object(value);
  OriginalLimits original;
  if (const auto quota = object.nullable("cpu_quota"))
    original.cpu_quota_cores = quota->positive_number(kMaxQuotaCores);
  if (const auto high = object.nullable("memory_high_bytes")) original.memory_high_bytes = high->bytes();
  return original;
}

Workload read_workload(const JsonValue& value) {
  JsonObject object(value);
  Workload workload;
  workload.id = object.required("id").name();
  const auto service = object.optional("service");
  workload.service = service ? service->name() : workload.id;
  workload.workload_class = object.required("class").choice(kClasses, to_string);
  if (const auto vcpus = object.nullable("vcpus")) workload.vcpus = vcpus->small_integer(1, kMaxCpu + 1);
  if (const auto memory = object.optional("memory_request_bytes"))
    workload.memory_request_bytes = memory->bytes();
  if (const auto cpus = object.optional("cpus")) workload.cpus = cpus->cpulist();
  if (const auto allowed = object.nullable("allowed_cpus")) workload.allowed_cpus = allowed->cpulist();
  if (const auto quota = object.nullable("cpu_quota"))
    workload.cpu_quota_cores = quota->positive_number(kMaxQuotaCores);
  if (const auto high = object.nullable("memory_high_bytes")) workload.memory_high_bytes = high->bytes();
  if (const auto priority = object.optional("priority"))
    workload.priority = priority->small_integer(-kMaxPriority, kMaxPriority);
  if (const auto evictable = object.optional("evictable")) workload.evictable = evictable->boolean();
  if (const auto created = object.optional("created")) workload.created = created->epoch();
  if (const auto deadline = object.nullable("deadline")) workload.deadline = deadline->epoch();
  if (const auto pinned = object.nullable("pinned_at")) workload.pinned_at = pinned->epoch();
  if (const auto spark = object.nullable("spark")) workload.spark = read_spark_identity(*spark);
  if (const auto gpus = object.optional("gpus"))
    gpus->each([&workload](const JsonValue& gpu) { workload.gpus.push_back(gpu.name()); });
  if (const auto original = object.nullable("original")) workload.original = read_original(*original);
  if (const auto usage = object.optional("usage"))
    usage->each([&workload](const JsonValue& sample) { workload.usage.push_back(read_sample(sample)); });
  return workload;
}

PendingWorkload read_pending(const JsonValue& value) {
  JsonObject object(value);
  PendingWorkload pending;
  pending.id = object.required("id").name();
  const auto service = object.optional("service");
  pending.service = service ? service->name() : pending.id;
  pending.workload_class = object.required("class").choice(kClasses, to_string);
  if (const auto vcpus = object.nullable("vcpus")) pending.vcpus = vcpus->small_integer(1, kMaxCpu + 1);
  if (const auto memory = object.optional("memory_request_bytes"))
    pending.memory_request_bytes = memory->bytes();
  return pending;
}

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
  if (const auto tasks = object.optional("tasks"))
    tasks->each([&stage](const JsonValue& element) {
      JsonObject task(element);
      SparkTask& read = stage.tasks.emplace_back();
      read.executor = task.required("executor").name();
      if (const auto input = task.optional("input_bytes")) read.input_bytes = input->bytes();
      read.duration_s = task.required("duration_s").number(0, kMaxSeconds);
    });
  return stage;
}

SparkApp read_app(const JsonValue& value) {
  JsonObject object(value);
  SparkApp app;
  app.id = object.required("id").name();
  if (const auto calculated = object.optional("calculated_time_s"))
    app.calculated_time_s = calculated->number(0, kMaxSeconds);
  if (const auto service = object.optional("shuffle_service")) app.shuffle_service = service->boolean();
  if (const auto migration = object.optional("migration")) app.migration = migration->boolean();
  if (const auto stages = object.optional("stages"))
    stages->each([&app](const JsonValue& stage) { app.stages.push_back(read_stage(stage)); });
  if (const auto running = object.optional("running"))
    running->each([&app](const JsonValue& element) {
      JsonObject task(element);
      SparkRunningTask& read = app.running.emplace_back();
      read.executor = task.required("executor").name();
      if (const auto elapsed = task.optional("elapsed_s")) read.elapsed_s = elapsed->number(0, kMaxSeconds);
    });
  return app;
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

// Everything but the topology, into `snapshot`.
void read_load(JsonObject& object, Snapshot& snapshot) {
  if (const auto host = object.optional("host")) snapshot.host = host->line();
  if (const auto time = object.optional("time")) snapshot.time = time->epoch();
  if (const auto load1 = object.optional("load1")) snapshot.load1 = load1->number(0, kMaxLoad);
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

void write_workload(JsonWriter& out, const Workload& workload) {
  out.begin_object().member("id", workload.id);
  if (!workload.service.empty()) out.member("service", workload.service);
  out.member("class", to_string(workload.workload_class)).member("vcpus", workload.vcpus);
  out.member("memory_request_bytes", workload.memory_request_bytes).member("cpus", workload.cpus);
  out.member_if("allowed_cpus", workload.allowed_cpus).member("cpu_quota", workload.cpu_quota_cores);
  out.member("memory_high_bytes", workload.memory_high_bytes).member("priority", workload.priority);
  out.member("evictable", workload.evictable).member("created", workload.created);
  out.member("deadline", workload.deadline).member_if("pinned_at", workload.pinned_at).key("spark");
  if (workload.spark) {
    out.begin_object().member("app", workload.spark->app).member("role", role_name(workload.spark->role));
    out.member("executor", workload.spark->executor).end_object();
  } else {
    out.null();
  }
  out.key("gpus").begin_array();
  for (const std::string& gpu : workload.gpus) out.value(gpu);
  out.end_array().key("original");
  if (workload.original) {
    out.begin_object().member("cpu_quota", workload.original->cpu_quota_cores);
    out.member("memory_high_bytes", workload.original->memory_high_bytes).end_object();
  } else {
    out.null();
  }
  out.key("usage").begin_array();
  for (const UsageSample& sample : workload.usage) {
    out.begin_object().member("time", sample.time).member("cpu", sample.cpu_cores);
    out.member_if("memory_bytes", sample.memory_bytes).member_if("progress", sample.progress);
    out.member_if("runq_latency_us", sample.runq_latency_us)
        .member_if("runq_latency_p50_us", sample.runq_latency_p50_us)
        .member_if("llc_mpki", sample.llc_mpki);
    out.end_object();
  }
  out.end_array().end_object();
}

void write_app(JsonWriter& out, const SparkApp& app) {
  out.begin_object().member("id", app.id).member("calculated_time_s", app.calculated_time_s);
  out.member("shuffle_service", app.shuffle_service).member("migration", app.migration);
  out.key("stages").begin_array();
  for (const SparkStage& stage : app.stages) {
    out.begin_object().member("id", stage.id).key("parents").begin_array();
    for (const int parent : stage.parents) out.value(parent);
    out.end_array().member("partitions", stage.partitions);
    out.member("shuffle_write_bytes", stage.shuffle_write_bytes).key("tasks").begin_array();
    for (const SparkTask& task : stage.tasks) {
      out.begin_object().member("executor", task.executor).member("input_bytes", task.input_bytes);
      out.member("duration_s", task.duration_s).end_object();
    }
    out.end_array().end_object();
  }
  out.end_array().key("running").begin_array();
  for (const SparkRunningTask& task : app.running)
    out.begin_object().member("executor", task.executor).member("elapsed_s", task.elapsed_s).end_object();
  out.end_array().end_object();
}

void write_services(JsonWriter& out, const std::map<std::string, ServiceProfile>& services) {
  out.begin_object();
  for (const auto& [name, profile] : services) {
    out.key(name).begin_object().member_if("pressure", profile.pressure);
    if (profile.model) {
      out.key("model").begin_object().member("b0", profile.model->b0);
      out.member("k1", profile.model->k1).member("k2", profile.model->k2).end_object();
    }
    out.end_object();
  }
  out.end_object();
}

}  // namespace

Result<ParsedSnapshot> parse_snapshot(std::string_view text, const TopologyResolver& resolve) {
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
  if (!context.failed()) check_snapshot(parsed.snapshot, context);
  if (context.failed()) return fail(*context.error());
  std::sort(parsed.snapshot.workloads.begin(), parsed.snapshot.workloads.end(),
            [](const Workload& a, const Workload& b) { return a.id < b.id; });
  parsed.warnings = context.take_warnings();
  return parsed;
}

std::string to_json(const Snapshot& snapshot) {
  std::vector<const Workload*> workloads;
  workloads.reserve(snapshot.workloads.size());
  for (const Workload& workload : snapshot.workloads) workloads.push_back(&workload);
  std::stable_sort(workloads.begin(), workloads.end(),
                   [](const Workload* a, const Workload* b) { return a->id < b->id; });

  JsonWriter out;
  out.begin_object().member("schema", kSchema).member("host", snapshot.host).member("time", snapshot.time);
  out.member("load1", snapshot.load1).key("topology").begin_object();
  write_topology(out, snapshot.topology);
  out.end_object().key("memory").begin_object().member("total_bytes", snapshot.memory.total_bytes);
  out.member("available_bytes", snapshot.memory.available_bytes);
  out.member("psi_full_avg10", snapshot.memory.psi_full_avg10).end_object().key("services");
  write_services(out, snapshot.services);
  out.key("workloads").begin_array();
  for (const Workload* workload : workloads) write_workload(out, *workload);
  out.end_array().key("pending").begin_array();
  for (const PendingWorkload& pending : snapshot.pending) {
    out.begin_object().member("id", pending.id);
    if (!pending.service.empty()) out.member("service", pending.service);
    out.member("class", to_string(pending.workload_class)).member("vcpus", pending.vcpus);
    out.member("memory_request_bytes", pending.memory_request_bytes).end_object();
  }
  out.end_array().key("spark_apps").begin_array();
  for (const SparkApp& app : snapshot.spark_apps) write_app(out, app);
  return out.end_array().end_object().take();
}

}  // namespace berth::model
