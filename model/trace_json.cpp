// SPDX-License-Identifier: Apache-2.0
#include "model/bounds.h"
#include "model/json.h"
#include "model/json_fields.h"
#include "model/snapshot_checks.h"
#include "model/snapshot_json.h"
#include "model/topology_json.h"
#include "model/trace.h"
#include "model/usage_json.h"
#include "model/workload_json.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr const char* kHeader = "berth.trace/1";
constexpr const char* kChange = "berth.change/1";
constexpr const char* kEnd = "berth.trace-end/1";

// Those of reading_fields().
template <typename AnyWorkload>
auto readings_of(AnyWorkload& workload) {
  return std::tie(workload.cpu_throttled, workload.cpu_lacked, workload.cpu_pressure, workload.cpi,
                  workload.llc_misses_per_s, workload.cpu_time_s, workload.cache_bytes);
}

// Whether two workloads of one run differ in nothing but readings and samples.
bool same_but_for_readings(const Workload& before, Workload now) {
  now.usage = before.usage;
  readings_of(now) = readings_of(before);
  return now == before;
}

bool has_samples_after(const UsageWindow& usage, double since) {
  return !usage.empty() && usage.times().back() > since;
}

// The members of the host that a change has where they differ. `Io` writes one, or takes it.
template <typename Io>
void host_members(Io& io) {
  io.member("straggler_seen_at", &Snapshot::straggler_seen_at, as::time);
  io.member("eviction_ended_at", &Snapshot::eviction_ended_at, as::time);
  io.member("spark_evicted", &Snapshot::spark_evicted, as::by_name(as::time));
  io.member("eviction_durations", &Snapshot::eviction_durations_s, AsDurations());
  io.memory_readings();
  io.member("load1", &Snapshot::load1, kLoad);
  io.member("advertised", &Snapshot::advertised, as::object);
  io.member("used_shares", &Snapshot::used_shares, as::list(as::object));
  io.member("recent_use", &Snapshot::recent_use, as::object);
  io.member("best_effort_cores", &Snapshot::best_effort_cores, AsByDomain(as::object));
  io.gpus();
  io.member("memory", &Snapshot::memory, as::object);
  io.member("services", &Snapshot::services, as::by_name(as::object));
  io.member("best_effort_groups", &Snapshot::groups, as::list(as::object));
  io.member("others", &Snapshot::others, as::list(as::object));
  io.member("pending", &Snapshot::pending, as::list(as::object));
  io.member("spark_apps", &Snapshot::spark_apps, as::list(as::object));
}

// Null is written for a value that is no more.
struct Differences {
  FieldWriter& io;
  const Snapshot& before;
  const Snapshot& now;

  template <typename T>
  void member(const char* name, T Snapshot::*field, const auto& how) {
    if (now.*field != before.*field) io.nullable(name, now.*field, how);
  }
  // Most changes add a reading; then that one is told.
  void memory_readings() {
    if (!now.memory_readings.empty() && now.memory_readings != before.memory_readings) {
      auto grown = before.memory_readings;
      add_reading(grown, now.memory_readings.back());
      if (grown == now.memory_readings)
        return io.required("memory_reading", now.memory_readings.back(), AsMemoryReading());
    }
    member("memory_readings", &Snapshot::memory_readings, AsMemoryReadings());
  }
  void gpus() {
    if (now.topology.gpus() != before.topology.gpus())
      io.required("gpus", now.topology.gpus(), AsGpus{before.topology.gpus()});
  }
};

// Moves the members that are in the document from `told` to `snapshot`.
struct Taker {
  const nlohmann::json& document;
  Snapshot& told;
  Snapshot& snapshot;

  template <typename T>
  void member(const char* name, T Snapshot::*field, const auto& /*how*/) {
    if (document.contains(name)) snapshot.*field = std::move(told.*field);
  }
  void memory_readings() { member("memory_readings", &Snapshot::memory_readings, AsMemoryReadings()); }
  // They lack the links that they had before, so they are read apart.
  void gpus() {}
};

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
  FieldWriter io(out);
  reading_fields(io, workload);
  if (has_samples_after(workload.usage, since)) io.required("usage", workload.usage, SamplesSince{since});
  out.end_object();
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
  FieldReader io(value);
  const auto most = static_cast<std::int64_t>(snapshot.workloads.size()) - 1;
  std::size_t index = 0;
  io.required("w", index, as::integer{0, std::max<std::int64_t>(most, 0)});
  if (io.failed()) return;
  if (index >= snapshot.workloads.size()) return value.fail("there is no workload");
  reading_fields(io, snapshot.workloads[index]);
  UsageWindow added;
  io.optional("usage", added, SamplesSince());
  if (!io.failed()) add_samples(snapshot.workloads, index, added, history);
}

struct TraceEnd {
  std::uint64_t ticks = 0;
};

template <typename Io>
void fields(Io& io, Of<Io, TraceEnd>& end) {
  io.schema(kEnd);
  io.required("ticks", end.ticks, as::count);
}

}  // namespace

template <typename Io>
void fields(Io& io, Of<Io, TraceHeader>& header) {
  io.schema(kHeader);
  io.optional("berth", header.berth, as::line);
  io.optional("host", header.host, as::line);
  io.required("begun", header.begun, as::time);
  io.required("history", header.history, as::integer{1, kMaxHistory});
}

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

std::string to_json(const TraceHeader& header) { return document_text(header); }

Result<TraceHeader> parse_trace_header(std::string_view text) { return parse_document<TraceHeader>(text); }

std::string trace_end_json(std::uint64_t ticks) { return document_text(TraceEnd{ticks}); }

Result<std::uint64_t> parse_trace_end(std::string_view text) {
  const auto end = parse_document<TraceEnd>(text);
  if (!end) return fail(end.error());
  return end->ticks;
}

std::optional<std::string> change_json(const Snapshot& before, const Snapshot& now) {
  if (now.host != before.host || now.time <= before.time || now.topology.cpus() != before.topology.cpus() ||
      now.owned_cpus != before.owned_cpus)
    return std::nullopt;
  std::vector<std::string> gone;
  const std::vector<Known> workloads = match(before, now, gone);
  JsonWriter out;
  out.begin_object();
  FieldWriter io(out);
  io.schema(kChange);
  io.required("time", now.time, as::time);
  Differences differences{io, before, now};
  host_members(differences);
  io.if_set("gone", gone, as::list(as::name));
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
    if (readings_of(*known) != readings_of(*workload) || has_samples_after(workload->usage, before.time))
      write_reading(out, i, *workload, before.time);
  }
  return out.end_array().end_object().take();
}

Result<void> apply_change(std::string_view text, std::size_t history, Snapshot& snapshot) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  context.ignore_unknown();
  {
    FieldReader io(JsonValue(context, *root));
    io.schema(kChange);
    if (context.failed()) return fail(*context.error());
    Snapshot told;
    const double before = snapshot.time;
    past_fields(io, told);
    present_fields(io, told);
    JsonObject& object = io.object();
    if (const auto gpus = object.optional("gpus"); gpus && !context.failed()) {
      std::vector<Gpu> now;
      AsGpus{snapshot.topology.gpus()}.read(*gpus, now);
      if (const auto set = snapshot.topology.set_gpus(std::move(now)); !set)
        gpus->fail(set.error().message());
    }
    Taker taker{*root, told, snapshot};
    taker.member("time", &Snapshot::time, as::time);
    host_members(taker);
    if (const auto reading = object.optional("memory_reading")) {
      MemoryReading added;
      AsMemoryReading().read(*reading, added);
      add_reading(snapshot.memory_readings, added);
    }
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
