// SPDX-License-Identifier: Apache-2.0
#include "model/bounds.h"
#include "model/json.h"
#include "model/json_reader.h"
#include "model/json_writer.h"
#include "model/oversell_json.h"
#include "model/snapshot_checks.h"
#include "model/snapshot_json.h"
#include "model/topology_json.h"
#include "model/trace.h"
#include "model/usage_json.h"
#include "model/workload_json.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr const char* kHeader = "berth.trace/1";
constexpr const char* kChange = "berth.change/1";
constexpr const char* kEnd = "berth.trace-end/1";
constexpr std::int64_t kMostTicks = std::int64_t{1} << 53;

// Whether two workloads of one run differ in nothing but readings and samples.
bool same_but_for_readings(const Workload& before, Workload now) {
  now.usage = before.usage;
  now.cpu_throttled = before.cpu_throttled;
  now.cpu_pressure = before.cpu_pressure;
  now.cpi = before.cpi;
  now.llc_misses_per_s = before.llc_misses_per_s;
  now.cpu_time_s = before.cpu_time_s;
  now.cache_bytes = before.cache_bytes;
  return now == before;
}

bool same_readings(const Workload& a, const Workload& b) {
  return a.cpu_throttled == b.cpu_throttled && a.cpu_pressure == b.cpu_pressure && a.cpi == b.cpi &&
         a.llc_misses_per_s == b.llc_misses_per_s && a.cpu_time_s == b.cpu_time_s &&
         a.cache_bytes == b.cache_bytes;
}

bool has_samples_after(const UsageWindow& usage, double since) {
  return !usage.empty() && usage.times().back() > since;
}

// Most changes add a reading; then that one is told.
void write_demand(JsonWriter& out, const Snapshot& before, const Snapshot& now) {
  if (now.eviction_durations_s != before.eviction_durations_s)
    write_eviction_durations(out.key("eviction_durations"), now.eviction_durations_s);
  if (now.memory_readings == before.memory_readings) return;
  if (!now.memory_readings.empty()) {
    auto grown = before.memory_readings;
    add_reading(grown, now.memory_readings.back());
    if (grown == now.memory_readings)
      return write_memory_reading(out.key("memory_reading"), now.memory_readings.back());
  }
  write_memory_readings(out.key("memory_readings"), now.memory_readings);
}

// The members of the host that differ; "null" for a value that is no more.
void write_host(JsonWriter& out, const Snapshot& before, const Snapshot& now) {
  if (now.straggler_seen_at != before.straggler_seen_at) out.time("straggler_seen_at", now.straggler_seen_at);
  if (now.eviction_ended_at != before.eviction_ended_at) out.time("eviction_ended_at", now.eviction_ended_at);
  if (now.spark_evicted != before.spark_evicted)
    write_spark_evicted(out.key("spark_evicted"), now.spark_evicted);
  write_demand(out, before, now);
  if (now.load1 != before.load1) out.member("load1", now.load1);
  if (now.advertised != before.advertised) {
    out.key("advertised");
    write_advertised(out, now.advertised);
  }
  if (now.used_shares != before.used_shares) write_used_shares(out.key("used_shares"), now.used_shares);
  if (now.recent_use != before.recent_use) {
    out.key("recent_use");
    now.recent_use ? write_recent_use(out, *now.recent_use) : void(out.null());
  }
  if (now.topology.gpus() != before.topology.gpus())
    write_changed_gpus(out.key("gpus"), now.topology.gpus(), before.topology.gpus());
  if (now.memory != before.memory) write_memory(out.key("memory"), now.memory);
  if (now.services != before.services) write_services(out.key("services"), now.services);
  if (now.pending != before.pending) write_pending(out.key("pending"), now.pending);
  if (now.spark_apps != before.spark_apps) write_apps(out.key("spark_apps"), now.spark_apps);
}

// A workload that is in `now`, and the same run in `before`; null there if it is new.
struct Known {
  const Workload* now;
  const Workload* before;
};

// The workloads of `now`, and the ids of those of `before` that are gone.
std::vector<Known> match(const Snapshot& before, const Snapshot& now, std::vector<std::string>& gone) {
  std::vector<Known> known;
  known.reserve(now.workloads.size());
  auto old = before.workloads.begin();
  for (const Workload& workload : now.workloads) {
    for (; old != before.workloads.end() && old->id < workload.id; ++old) gone.push_back(old->id);
    const bool met = old != before.workloads.end() && old->id == workload.id;
    const bool same_run = met && old->created == workload.created;
    if (met && !same_run) gone.push_back(old->id);
    known.push_back({&workload, same_run ? &*old : nullptr});
    if (met) ++old;
  }
  for (; old != before.workloads.end(); ++old) gone.push_back(old->id);
  return known;
}

void write_reading(JsonWriter& out, std::size_t index, const Workload& workload, double since) {
  out.begin_object().member("w", static_cast<std::uint64_t>(index));
  write_readings(out, workload);
  if (has_samples_after(workload.usage, since)) write_samples(out, workload.usage, since);
  out.end_object();
}

// The members of a change that were in the document, moved from `told` to `snapshot`.
class Told {
 public:
  Told(const nlohmann::json& document, Snapshot& told, Snapshot& snapshot)
      : document_(document), told_(told), snapshot_(snapshot) {}

  template <typename T>
  void take(const char* name, T Snapshot::*member) {
    if (document_.contains(name)) snapshot_.*member = std::move(told_.*member);
  }

 private:
  const nlohmann::json& document_;
  Snapshot& told_;
  Snapshot& snapshot_;
};

void take_host(const nlohmann::json& document, Snapshot& told, Snapshot& snapshot) {
  Told from(document, told, snapshot);
  from.take("time", &Snapshot::time);
  from.take("straggler_seen_at", &Snapshot::straggler_seen_at);
  from.take("eviction_ended_at", &Snapshot::eviction_ended_at);
  from.take("spark_evicted", &Snapshot::spark_evicted);
  from.take("memory_readings", &Snapshot::memory_readings);
  from.take("eviction_durations", &Snapshot::eviction_durations_s);
  from.take("load1", &Snapshot::load1);
  from.take("advertised", &Snapshot::advertised);
  from.take("used_shares", &Snapshot::used_shares);
  from.take("recent_use", &Snapshot::recent_use);
  from.take("memory", &Snapshot::memory);
  from.take("services", &Snapshot::services);
  from.take("pending", &Snapshot::pending);
  from.take("spark_apps", &Snapshot::spark_apps);
}

void remove_gone(const JsonValue& list, Snapshot& snapshot) {
  std::set<std::string> gone;
  list.each([&gone](const JsonValue& id) { gone.insert(id.name()); });
  const std::size_t before = snapshot.workloads.size();
  std::erase_if(snapshot.workloads, [&](const Workload& workload) { return gone.contains(workload.id); });
  if (before - snapshot.workloads.size() != gone.size()) list.fail("names a workload that is not there");
}

// Adds samples to a window; the window before may have the same times.
void add_samples(std::vector<Workload>& workloads, std::size_t index, const UsageWindow& added,
                 std::size_t history) {
  const UsageWindow* like = index > 0 ? &workloads[index - 1].usage : nullptr;
  for (const UsageSample& sample : added) workloads[index].usage.add(sample, history, like);
}

// New workloads, and known ones that changed. berth tells them by id; another recorder need not.
void merge_workloads(std::vector<Workload> told, std::size_t history, Snapshot& snapshot) {
  auto& workloads = snapshot.workloads;
  std::vector<Workload> fresh;
  for (Workload& workload : told) {
    const auto place =
        std::lower_bound(workloads.begin(), workloads.end(), workload.id,
                         [](const Workload& known, const std::string& id) { return known.id < id; });
    if (place == workloads.end() || place->id != workload.id) {
      fresh.push_back(std::move(workload));
      continue;
    }
    const UsageWindow added = std::exchange(workload.usage, std::move(place->usage));
    *place = std::move(workload);
    add_samples(workloads, static_cast<std::size_t>(place - workloads.begin()), added, history);
  }
  if (fresh.empty()) return;
  const auto by_id = [](const Workload& a, const Workload& b) { return a.id < b.id; };
  std::sort(fresh.begin(), fresh.end(), by_id);
  const auto middle = static_cast<std::ptrdiff_t>(workloads.size());
  std::move(fresh.begin(), fresh.end(), std::back_inserter(workloads));
  std::inplace_merge(workloads.begin(), workloads.begin() + middle, workloads.end(), by_id);
}

void take_reading(const JsonValue& value, std::size_t history, Snapshot& snapshot) {
  JsonObject object(value);
  const auto most = static_cast<std::int64_t>(snapshot.workloads.size()) - 1;
  const auto index =
      static_cast<std::size_t>(object.required("w").integer(0, std::max<std::int64_t>(most, 0)));
  if (value.context().failed()) return;
  if (index >= snapshot.workloads.size()) return value.fail("there is no workload");
  read_readings(object, snapshot.workloads[index]);
  const auto usage = object.optional("usage");
  if (!usage) return;
  UsageWindow added;
  usage->each([&added](const JsonValue& sample) { added.push_back(read_sample(sample)); });
  if (!value.context().failed()) add_samples(snapshot.workloads, index, added, history);
}

}  // namespace

std::optional<TraceLine> trace_line_of(std::string_view text) {
  constexpr std::array<std::pair<const char*, TraceLine>, 4> kLines{
      {{kHeader, TraceLine::header},
       {"berth.snapshot/1", TraceLine::snapshot},
       {kChange, TraceLine::change},
       {kEnd, TraceLine::end}}};
  constexpr std::string_view kBegin = R"({"schema":")";
  if (!text.starts_with(kBegin)) return std::nullopt;
  text.remove_prefix(kBegin.size());
  const std::string_view schema = text.substr(0, text.find('"'));
  for (const auto& [name, line] : kLines) {
    if (schema == name) return line;
  }
  return std::nullopt;
}

std::string to_json(const TraceHeader& header) {
  JsonWriter out;
  out.begin_object().member("schema", kHeader).member("berth", header.berth).member("host", header.host);
  return out.time("begun", header.begun).member("history", header.history).end_object().take();
}

Result<TraceHeader> parse_trace_header(std::string_view text) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  TraceHeader header;
  {
    JsonObject object(JsonValue(context, *root));
    object.ignore_unknown();
    object.require_schema(kHeader);
    if (const auto berth = object.optional("berth")) header.berth = berth->line();
    if (const auto host = object.optional("host")) header.host = host->line();
    header.begun = object.required("begun").epoch();
    header.history = object.required("history").small_integer(1, kMaxHistory);
  }
  if (context.failed()) return fail(*context.error());
  return header;
}

std::string trace_end_json(std::uint64_t ticks) {
  JsonWriter out;
  return out.begin_object().member("schema", kEnd).member("ticks", ticks).end_object().take();
}

Result<std::uint64_t> parse_trace_end(std::string_view text) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  std::uint64_t ticks = 0;
  {
    JsonObject object(JsonValue(context, *root));
    object.ignore_unknown();
    object.require_schema(kEnd);
    ticks = static_cast<std::uint64_t>(object.required("ticks").integer(0, kMostTicks));
  }
  if (context.failed()) return fail(*context.error());
  return ticks;
}

std::optional<std::string> change_json(const Snapshot& before, const Snapshot& now) {
  if (now.host != before.host || now.time <= before.time || now.topology.cpus() != before.topology.cpus() ||
      now.owned_cpus != before.owned_cpus)
    return std::nullopt;
  std::vector<std::string> gone;
  const std::vector<Known> workloads = match(before, now, gone);
  JsonWriter out;
  out.begin_object().member("schema", kChange).time("time", now.time);
  write_host(out, before, now);
  if (!gone.empty()) {
    out.key("gone").begin_array();
    for (const std::string& id : gone) out.value(id);
    out.end_array();
  }
  out.key("workloads").begin_array();
  std::vector<bool> told(workloads.size());
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const auto& [workload, known] = workloads[i];
    told[i] = known == nullptr || !same_but_for_readings(*known, *workload);
    if (told[i]) write_workload(out, *workload, known == nullptr ? -1 : before.time);
  }
  out.end_array().key("readings").begin_array();
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const auto& [workload, known] = workloads[i];
    if (told[i]) continue;
    if (!same_readings(*known, *workload) || has_samples_after(workload->usage, before.time))
      write_reading(out, i, *workload, before.time);
  }
  return out.end_array().end_object().take();
}

Result<void> apply_change(std::string_view text, std::size_t history, Snapshot& snapshot) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  const JsonValue document(context, *root);
  {
    JsonObject object(document);
    object.ignore_unknown();
    object.require_schema(kChange);
    if (context.failed()) return fail(*context.error());
    Snapshot told;
    const double before = snapshot.time;
    read_load(object, told);
    if (const auto gpus = object.optional("gpus"); gpus && !context.failed()) {
      auto now = read_changed_gpus(*gpus, snapshot.topology.gpus());
      if (const auto set = snapshot.topology.set_gpus(std::move(now)); !set)
        gpus->fail(set.error().message());
    }
    take_host(*root, told, snapshot);
    if (const auto reading = object.optional("memory_reading"))
      add_reading(snapshot.memory_readings, read_memory_reading(*reading));
    if (!context.failed() && snapshot.time <= before)
      context.fail("$.time", "not later than the tick before");
    if (const auto gone = object.optional("gone"); gone && !context.failed()) remove_gone(*gone, snapshot);
    if (!context.failed()) merge_workloads(std::move(told.workloads), history, snapshot);
    if (const auto readings = object.optional("readings"))
      readings->each([&](const JsonValue& reading) { take_reading(reading, history, snapshot); });
  }
  if (!context.failed()) check_snapshot(snapshot, context);
  if (context.failed()) return fail(*context.error());
  return {};
}

}  // namespace berth::model
