// SPDX-License-Identifier: Apache-2.0
#include "model/workload_json.h"

#include "model/borrowing_json.h"
#include "model/bounds.h"
#include "model/json.h"
#include "model/learning.h"
#include "model/usage_json.h"

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr double kMaxCpuSeconds = 1e15;

constexpr std::array kRoles{SparkRole::executor, SparkRole::driver};
constexpr std::array kCauses{HeldCause::extended, HeldCause::reclaimed, HeldCause::preempted};

const char* role_name(SparkRole role) { return role == SparkRole::executor ? "executor" : "driver"; }

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

HeldLimit read_held(const JsonValue& value) {
  JsonObject object(value);
  HeldLimit held;
  held.cause = object.required("cause").choice(kCauses, to_string);
  held.since = object.required("since").epoch();
  const auto changed = object.optional("changed_at");
  held.changed_at = changed ? changed->epoch() : held.since;
  if (held.changed_at < held.since)
    object.context().fail(object.path_of("changed_at"),
                          fmt::format("{} is before since, {}", held.changed_at, held.since));
  return held;
}

void read_held_limits(const JsonValue& value, Workload& workload) {
  JsonObject object(value);
  if (const auto cpu = object.nullable("cpu")) workload.held_cpu = read_held(*cpu);
  if (const auto memory = object.nullable("memory")) workload.held_memory = read_held(*memory);
}

FixedLimits read_fixed_limits(const JsonValue& value) {
  JsonObject object(value);
  FixedLimits fixed;
  if (const auto cpu = object.optional("cpu")) fixed.cpu = cpu->boolean();
  if (const auto memory = object.optional("memory")) fixed.memory = memory->boolean();
  if (const auto life = object.optional("life")) fixed.life = life->boolean();
  if (const auto nodes = object.optional("memory_nodes")) fixed.memory_nodes = nodes->boolean();
  if (const auto idle = object.optional("cpu_idle")) fixed.cpu_idle = idle->boolean();
  return fixed;
}

void write_held_limits(JsonWriter& out, const Workload& workload) {
  if (!workload.held_cpu && !workload.held_memory) return;
  out.key("held").begin_object();
  if (workload.held_cpu) write_held(out.key("cpu"), *workload.held_cpu);
  if (workload.held_memory) write_held(out.key("memory"), *workload.held_memory);
  out.end_object();
}

void write_fixed_limits(JsonWriter& out, const FixedLimits& fixed) {
  if (fixed == FixedLimits{}) return;
  out.key("fixed").begin_object().member("cpu", fixed.cpu).member("memory", fixed.memory);
  out.member("life", fixed.life);
  if (fixed.memory_nodes) out.member("memory_nodes", true);
  if (fixed.cpu_idle) out.member("cpu_idle", true);
  out.end_object();
}

void write_sample(JsonWriter& out, const UsageSample& sample) {
  out.begin_object().time("time", sample.time).member("cpu", sample.cpu_cores);
  out.member_if("memory_bytes", sample.memory_bytes).member_if("progress", sample.progress);
  out.member_if("runq_latency_us", sample.runq_latency_us)
      .member_if("runq_latency_p50_us", sample.runq_latency_p50_us)
      .member_if("llc_mpki", sample.llc_mpki);
  out.end_object();
}

}  // namespace

void write_held(JsonWriter& out, const HeldLimit& held) {
  out.begin_object().member("cause", to_string(held.cause)).time("since", held.since);
  out.time("changed_at", held.changed_at).end_object();
}

void read_readings(JsonObject& object, Workload& workload) {
  workload.cpu_throttled.reset();
  workload.cpu_pressure.reset();
  workload.cpi.reset();
  workload.llc_misses_per_s.reset();
  workload.cpu_time_s.reset();
  workload.cache_bytes.reset();
  if (const auto share = object.nullable("cpu_throttled")) workload.cpu_throttled = share->fraction();
  if (const auto share = object.nullable("cpu_pressure")) workload.cpu_pressure = share->fraction();
  if (const auto cpi = object.nullable("cpi")) workload.cpi = cpi->number(0, kMostResponse);
  if (const auto misses = object.nullable("llc_misses_per_s"))
    workload.llc_misses_per_s = misses->number(0, kMostMisses);
  if (const auto used = object.nullable("cpu_time_s")) workload.cpu_time_s = used->number(0, kMaxCpuSeconds);
  if (const auto cache = object.nullable("cache_bytes")) workload.cache_bytes = cache->bytes();
}

void write_readings(JsonWriter& out, const Workload& workload) {
  out.member_if("cpu_throttled", workload.cpu_throttled).member_if("cpu_pressure", workload.cpu_pressure);
  out.member_if("cpi", workload.cpi).member_if("llc_misses_per_s", workload.llc_misses_per_s);
  out.member_if("cpu_time_s", workload.cpu_time_s).member_if("cache_bytes", workload.cache_bytes);
}

void write_samples(JsonWriter& out, const UsageWindow& usage, double since) {
  std::size_t known = 0;  // samples at the beginning that are not later
  const auto& times = usage.times();
  if (since >= 0) {
    known = times.size();
    while (known > 0 && times.begin()[known - 1] > since) --known;
  }
  out.key("usage").begin_array();
  auto sample = usage.end();
  for (std::size_t left = times.size() - known; left > 0; --left) --sample;
  for (; sample != usage.end(); ++sample) write_sample(out, *sample);
  out.end_array();
}

Workload read_workload(const JsonValue& value) {
  JsonObject object(value);
  Workload workload;
  workload.id = object.required("id").name();
  const auto service = object.optional("service");
  workload.service = service ? service->name() : workload.id;
  workload.workload_class = object.required("class").choice(kWorkloadClasses, to_string);
  if (const auto vcpus = object.nullable("vcpus")) workload.vcpus = vcpus->small_integer(1, kMaxCpu + 1);
  if (const auto memory = object.optional("memory_request_bytes"))
    workload.memory_request_bytes = memory->bytes();
  if (const auto cpus = object.optional("cpus")) workload.cpus = cpus->cpulist();
  if (const auto shares = object.optional("shares")) workload.shares = shares->boolean();
  if (const auto told = object.optional("told_cpus")) workload.told_cpus = told->cpulist();
  if (const auto nodes = object.optional("memory_nodes")) workload.memory_nodes = nodes->cpulist();
  if (const auto idle = object.optional("cpu_idle")) workload.cpu_idle = idle->boolean();
  if (const auto allowed = object.nullable("allowed_cpus")) workload.allowed_cpus = allowed->cpulist();
  if (const auto quota = object.nullable("cpu_quota"))
    workload.cpu_quota_cores = quota->positive_number(kMaxQuotaCores);
  if (const auto high = object.nullable("memory_high_bytes")) workload.memory_high_bytes = high->bytes();
  if (const auto priority = object.optional("priority"))
    workload.priority = priority->small_integer(-kMaxPriority, kMaxPriority);
  if (const auto evictable = object.optional("evictable")) workload.evictable = evictable->boolean();
  if (const auto borrow = object.optional("borrow")) workload.borrow = borrow->boolean();
  if (const auto force = object.optional("force")) workload.force = force->boolean();
  if (const auto created = object.optional("created")) workload.created = created->epoch();
  if (const auto user = object.optional("user"))
    workload.user = static_cast<std::uint32_t>(user->integer(0, UINT32_MAX));
  if (const auto deadline = object.nullable("deadline")) workload.deadline = deadline->epoch();
  if (const auto since = object.nullable("leaf_since")) workload.leaf_since = since->epoch();
  if (const auto pinned = object.nullable("pinned_at")) workload.pinned_at = pinned->epoch();
  if (const auto spark = object.nullable("spark")) workload.spark = read_spark_identity(*spark);
  if (const auto spared = object.nullable("spared")) workload.spared = spared->text();
  if (const auto gpus = object.optional("gpus"))
    gpus->each([&workload](const JsonValue& gpu) { workload.gpus.push_back(gpu.name()); });
  if (const auto original = object.nullable("original")) workload.original = read_original(*original);
  if (const auto held = object.nullable("held")) read_held_limits(*held, workload);
  if (const auto fixed = object.nullable("fixed")) workload.fixed = read_fixed_limits(*fixed);
  if (const auto reason = object.nullable("left_alone")) workload.left_alone = reason->text();
  if (const auto straggled = object.nullable("straggled_at")) workload.straggled_at = straggled->epoch();
  if (const auto pressed = object.nullable("pressed_at")) workload.pressed_at = pressed->epoch();
  if (const auto since = object.nullable("progressed_at")) workload.progressed_at = since->epoch();
  if (const auto since = object.nullable("evicted_at")) workload.evicted_at = since->epoch();
  if (const auto lending = object.nullable("lending")) workload.lending = read_lending_state(*lending);
  read_readings(object, workload);
  if (const auto progress = object.optional("progress"))
    as::list(as::object).read(*progress, workload.progress);
  if (const auto usage = object.optional("usage"))
    usage->each([&workload](const JsonValue& sample) { workload.usage.push_back(read_sample(sample)); });
  return workload;
}

void write_workload(JsonWriter& out, const Workload& workload, double since) {
  out.begin_object().member("id", workload.id);
  if (!workload.service.empty()) out.member("service", workload.service);
  out.member("class", to_string(workload.workload_class)).member("vcpus", workload.vcpus);
  out.member("memory_request_bytes", workload.memory_request_bytes).member("cpus", workload.cpus);
  if (workload.shares) out.member("shares", true);
  if (!workload.told_cpus.empty()) out.member("told_cpus", workload.told_cpus);
  if (!workload.memory_nodes.empty()) out.member("memory_nodes", workload.memory_nodes);
  if (workload.cpu_idle) out.member("cpu_idle", true);
  out.member_if("allowed_cpus", workload.allowed_cpus).member("cpu_quota", workload.cpu_quota_cores);
  out.member("memory_high_bytes", workload.memory_high_bytes).member("priority", workload.priority);
  out.member("evictable", workload.evictable).time("created", workload.created);
  if (!workload.borrow) out.member("borrow", false);
  if (workload.force) out.member("force", true);
  if (workload.user) out.member("user", std::uint64_t{*workload.user});
  out.time_if("leaf_since", workload.leaf_since);
  out.time("deadline", workload.deadline).time_if("pinned_at", workload.pinned_at).key("spark");
  if (workload.spark) {
    out.begin_object().member("app", workload.spark->app).member("role", role_name(workload.spark->role));
    out.member("executor", workload.spark->executor).end_object();
  } else {
    out.null();
  }
  out.member_if("spared", workload.spared);
  out.key("gpus").begin_array();
  for (const std::string& gpu : workload.gpus) out.value(gpu);
  out.end_array().key("original");
  if (workload.original) {
    out.begin_object().member("cpu_quota", workload.original->cpu_quota_cores);
    out.member("memory_high_bytes", workload.original->memory_high_bytes).end_object();
  } else {
    out.null();
  }
  write_held_limits(out, workload);
  write_fixed_limits(out, workload.fixed);
  out.member_if("left_alone", workload.left_alone);
  out.time_if("straggled_at", workload.straggled_at).time_if("pressed_at", workload.pressed_at);
  out.time_if("progressed_at", workload.progressed_at).time_if("evicted_at", workload.evicted_at);
  if (workload.lending) write_lending_state(out.key("lending"), *workload.lending);
  write_readings(out, workload);
  if (!workload.progress.empty()) {
    as::list(as::object).write(out.key("progress"), workload.progress);
  }
  write_samples(out, workload.usage, since);
  out.end_object();
}

}  // namespace berth::model
