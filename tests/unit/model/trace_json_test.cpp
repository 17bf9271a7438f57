// SPDX-License-Identifier: Apache-2.0
// The lines of a trace: a change makes the next snapshot of the one before, and nothing else is taken.
#include "model/json.h"
#include "model/trace.h"
#include "tests/unit/model/generators.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::model {
namespace {

namespace gen = rc::gen;
using ::testing::HasSubstr;

constexpr std::size_t kHistory = 5;

bool one_in(int n) { return *gen::inRange(0, n) == 0; }

// Adds a sample to each window, and drops the oldest ones.
void sample(Workload& workload, double time) {
  UsageSample newest;
  newest.time = time;
  newest.cpu_cores = *testing::fractions();
  if (one_in(2)) newest.memory_bytes = static_cast<std::uint64_t>(*gen::inRange(0, 1 << 30));
  workload.usage.add(newest, kHistory);
}

// What a later tick of the same host may look like.
Snapshot later(const Snapshot& before, const Snapshot& other) {
  Snapshot now = before;
  now.time = before.time + 1 + *testing::fractions();
  if (one_in(2)) now.load1 = other.load1;
  if (one_in(2)) now.memory = other.memory;
  if (one_in(3)) now.services = other.services;
  if (one_in(3)) now.spark_apps = other.spark_apps;
  if (one_in(3)) now.advertised = other.advertised;
  if (one_in(3)) now.used_shares = other.used_shares;
  if (one_in(3)) now.recent_use = other.recent_use;
  if (one_in(3)) now.straggler_seen_at = other.straggler_seen_at;
  if (one_in(3)) now.eviction_ended_at = other.eviction_ended_at;
  if (one_in(3)) now.spark_evicted = other.spark_evicted;
  if (one_in(4)) now.memory_readings = other.memory_readings;
  if (one_in(2)) add_reading(now.memory_readings, {now.time, 7});
  if (one_in(4)) now.eviction_durations_s = other.eviction_durations_s;
  std::erase_if(now.workloads, [](const Workload&) { return one_in(5); });
  for (Workload& workload : now.workloads) {
    if (one_in(6)) {  // another run
      workload.created += 1;
      workload.usage.clear();
    }
    if (one_in(3)) workload.priority += 1;
    if (one_in(2)) workload.cpu_time_s = 1.5;
    if (one_in(4)) workload.cpi.reset();
  }
  if (one_in(2)) {
    Workload fresh;
    fresh.id = "fresh/" + std::to_string(*gen::inRange(0, 1000));
    fresh.service = "fresh";
    fresh.created = now.time;  // each run of a workload begins at another time
    // No two workloads of a host have one id.
    const bool is_taken = std::any_of(now.workloads.begin(), now.workloads.end(),
                                      [&fresh](const Workload& known) { return known.id == fresh.id; });
    if (!is_taken) now.workloads.push_back(fresh);
  }
  std::sort(now.workloads.begin(), now.workloads.end(),
            [](const Workload& a, const Workload& b) { return a.id < b.id; });
  for (Workload& workload : now.workloads) {
    if (!one_in(4)) sample(workload, now.time);
  }
  // GPUs that were held by a workload that is gone are free.
  auto gpus = now.topology.gpus();
  for (Gpu& gpu : gpus) {
    gpu.holder.reset();
    if (one_in(2)) gpu.utilisation = *testing::fractions();
  }
  if (one_in(4)) {
    for (Gpu& gpu : gpus) gpu.links.clear();
  }
  (void)now.topology.set_gpus(gpus);
  return now;
}

Snapshot begin(const testing::SnapshotShape& shape) {
  Snapshot snapshot = *testing::snapshots(shape);
  snapshot.time = 1e9 + 1e6;  // later than all samples
  for (Workload& workload : snapshot.workloads) {
    std::vector<UsageSample> samples(workload.usage.begin(), workload.usage.end());
    if (samples.size() > kHistory) samples.erase(samples.begin(), samples.end() - kHistory);
    for (UsageSample& sample : samples) sample.time = std::min(sample.time, snapshot.time);
    workload.usage = samples;
  }
  return snapshot;
}

RC_GTEST_PROP(TraceChange, MakesTheNextSnapshot, ()) {
  testing::SnapshotShape shape;
  shape.max_workloads = 6;
  Snapshot replayed = begin(shape);
  Snapshot recorded = replayed;
  for (int tick = 0; tick < 3; ++tick) {
    const Snapshot now = later(recorded, *testing::snapshots(shape));
    const auto change = change_json(recorded, now);
    RC_ASSERT(change.has_value());
    RC_ASSERT(trace_line_of(*change) == TraceLine::change);
    const auto applied = apply_change(*change, kHistory, replayed);
    if (!applied) RC_FAIL(applied.error().message());
    RC_ASSERT(to_json(replayed) == to_json(now));
    recorded = now;
  }
}

// A recorder asks for what it lacks: windows without the samples that it has.
RC_GTEST_PROP(TraceChange, NeedsOnlyTheSamplesSince, ()) {
  const Snapshot before = begin({});
  const Snapshot now = later(before, before);
  const auto told = parse_snapshot(to_json_since(now, before.time));
  RC_ASSERT(told.has_value());
  const auto had = parse_snapshot(to_json_since(before, before.time - 1));
  RC_ASSERT(change_json(had->snapshot, told->snapshot) == change_json(before, now));
}

Snapshot small() {
  return parse_snapshot(
             R"({"schema":"berth.snapshot/1","host":"a","time":100,"topology":{"cpus":[{"cpu":0,"core":0}]},)"
             R"("workloads":[{"id":"w","class":"best-effort","created":1,"usage":[{"time":99,"cpu":1}]}]})")
      .value()
      .snapshot;
}

std::string refusal(const std::string& text) {
  Snapshot snapshot = small();
  const auto applied = apply_change(text, kHistory, snapshot);
  return applied ? "" : applied.error().message();
}

std::string change_with(const std::string& members) {
  return R"({"schema":"berth.change/1","time":101,"workloads":[],)" + members + "}";
}

TEST(TraceChange, TakesWhatARecorderWrites) {
  EXPECT_EQ(refusal(change_with(R"("readings":[{"w":0,"cpu_time_s":2,"usage":[{"time":101,"cpu":2}]}])")),
            "");
  EXPECT_EQ(refusal(change_with(R"("gone":["w"])")), "");
}

TEST(TraceChange, RefusesWhatDoesNotFit) {
  EXPECT_THAT(refusal(change_with(R"("readings":[{"w":1}])")), HasSubstr("$.readings[0].w"));
  EXPECT_THAT(refusal(change_with(R"("gone":["w"],"readings":[{"w":0}])")), HasSubstr("no workload"));
  EXPECT_THAT(refusal(change_with(R"("readings":[{"w":-1}])")), HasSubstr("$.readings[0].w"));
  EXPECT_THAT(refusal(change_with(R"("gone":["x"])")), HasSubstr("$.gone"));
  EXPECT_EQ(refusal(change_with(R"("gone":["w","w"])")), "");
  EXPECT_THAT(refusal(change_with(R"("readings":[{"w":0,"usage":[{"time":98,"cpu":1}]}])")),
              HasSubstr("before the sample"));
  EXPECT_THAT(refusal(change_with(R"("gpus":[{"id":"g","holder":"none"}])")), HasSubstr("holder"));
  EXPECT_THAT(refusal(R"({"schema":"berth.change/1","time":100,"workloads":[]})"), HasSubstr("$.time"));
  EXPECT_THAT(refusal(R"({"schema":"berth.change/1","workloads":[]})"), HasSubstr("$.time"));
  EXPECT_THAT(refusal(R"({"schema":"berth.snapshot/1"})"), HasSubstr("schema"));
  EXPECT_THAT(refusal("[]"), HasSubstr("object"));
}

TEST(TraceChange, NewWorkloadsMayComeInAnyOrder) {
  Snapshot snapshot = small();
  ASSERT_TRUE(apply_change(
      R"({"schema":"berth.change/1","time":101,"workloads":[{"id":"y","class":"best-effort","created":1},)"
      R"({"id":"x","class":"best-effort","created":1}]})",
      kHistory, snapshot));
  std::vector<std::string> ids;
  for (const Workload& workload : snapshot.workloads) ids.push_back(workload.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"w", "x", "y"}));
}

TEST(TraceChange, LinksOfGpusAreToldWhereTheyChangeAlone) {
  Snapshot before = small();
  std::vector<Gpu> gpus(2);
  gpus[0].id = "a";
  gpus[1].id = "b";
  gpus[0].links = {{.id = "b", .link = GpuLink::nv}};
  ASSERT_TRUE(before.topology.set_gpus(gpus));
  const auto replayed = [&before](const std::vector<Gpu>& then) {
    Snapshot now = before;
    now.time += 1;
    EXPECT_TRUE(now.topology.set_gpus(then));
    std::string change = change_json(before, now).value();
    Snapshot applied = before;
    EXPECT_TRUE(apply_change(change, kHistory, applied));
    EXPECT_EQ(applied.topology.gpus(), then);
    return change;
  };
  gpus[0].utilisation = 0.5;
  EXPECT_THAT(replayed(gpus), ::testing::Not(HasSubstr("links")));
  gpus[0].links[0].link = GpuLink::pix;
  EXPECT_THAT(replayed(gpus), HasSubstr(R"("links":{"b":"PIX"})"));
  gpus[0].links.clear();
  EXPECT_THAT(replayed(gpus), HasSubstr(R"("links":{})"));
  // The GPU that it was linked with is gone.
  gpus.pop_back();
  EXPECT_THAT(replayed(gpus), HasSubstr(R"("links":{})"));
  Snapshot stale = before;
  EXPECT_FALSE(apply_change(change_with(R"("gpus":[{"id":"a"}])"), kHistory, stale));
}

TEST(TraceChange, AnotherHostOrAnEarlierTimeNeedsAWholeSnapshot) {
  const Snapshot before = small();
  Snapshot now = before;
  EXPECT_EQ(change_json(before, now), std::nullopt);
  now.time += 1;
  EXPECT_TRUE(change_json(before, now).has_value());
  now.host = "b";
  EXPECT_EQ(change_json(before, now), std::nullopt);
}

TEST(TraceLines, HeaderAndEndAreReadBack) {
  const TraceHeader header{"0.1.0", "node-a", 1790000000.5, 60};
  EXPECT_EQ(trace_line_of(to_json(header)), TraceLine::header);
  EXPECT_EQ(parse_trace_header(to_json(header)), header);
  EXPECT_EQ(trace_line_of(trace_end_json(7)), TraceLine::end);
  EXPECT_EQ(parse_trace_end(trace_end_json(7)), 7U);
  EXPECT_FALSE(parse_trace_header(R"({"schema":"berth.trace/1","begun":1,"history":0})"));
  EXPECT_FALSE(parse_trace_header(R"({"schema":"berth.trace/1","begun":1,"history":1e9})"));
  EXPECT_FALSE(parse_trace_end(R"({"schema":"berth.trace-end/1","ticks":-1})"));
  EXPECT_EQ(trace_line_of("{}"), std::nullopt);
  EXPECT_EQ(trace_line_of(R"({"schema":"berth.plan/1"})"), std::nullopt);
}

}  // namespace
}  // namespace berth::model
