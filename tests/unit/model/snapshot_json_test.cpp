// SPDX-License-Identifier: Apache-2.0
// A snapshot document: its optional members, its forbidden values, and the place that an error names.
#include "model/json.h"
#include "tests/unit/model/documents.h"

#include <cmath>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::model {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::snapshot_document;
using ::testing::StartsWith;
using testing::topology_document;
using testing::workload_document;

ParsedSnapshot parsed(const std::string& document) {
  auto result = parse_snapshot(document);
  if (result) return *std::move(result);
  ADD_FAILURE() << result.error().message();
  return {};
}

Workload workload(const std::string& members) {
  const ParsedSnapshot snapshot = parsed(workload_document(members));
  return snapshot.snapshot.workloads.empty() ? Workload{} : snapshot.snapshot.workloads.front();
}

TEST(SnapshotJson, OnlySchemaTopologyAndWorkloadsAreRequired) {
  const Snapshot snapshot = parsed(snapshot_document("")).snapshot;
  EXPECT_EQ(snapshot.host, "");
  EXPECT_EQ(snapshot.time, 0);
  EXPECT_EQ(snapshot.memory, MemoryState{});
  EXPECT_TRUE(snapshot.workloads.empty());
  EXPECT_EQ(error_of(R"({"schema":"berth.snapshot/1","topology":)" + topology_document() + "}"),
            "$.workloads: missing");
  EXPECT_EQ(error_of(R"({"schema":"berth.snapshot/1","workloads":[]})"), "$.topology: missing");
}

TEST(SnapshotJson, ASchemaThatIsMissingOrAnother) {
  EXPECT_EQ(error_of("{}"), "$.schema: missing; expected \"berth.snapshot/1\"");
  EXPECT_EQ(error_of(R"({"schema":"berth.snapshot/2"})"),
            "$.schema: expected \"berth.snapshot/1\", found \"berth.snapshot/2\"; another version of berth "
            "wrote it: "
            "use the berthctl of that host");
  EXPECT_EQ(error_of(R"({"schema":1})"), "$.schema: expected a string, found a number");
}

TEST(SnapshotJson, AWorkloadNeedsAnIdAndAClass) {
  EXPECT_EQ(error_of(snapshot_document(R"({"class":"best-effort"})")), "$.workloads[0].id: missing");
  EXPECT_EQ(error_of(snapshot_document(R"({"id":"w"})")), "$.workloads[0].class: missing");
}

TEST(SnapshotJson, WhatAWorkloadLeavesOut) {
  const Workload bare = workload("");
  EXPECT_EQ(bare.service, "w");
  Workload expected;
  expected.id = expected.service = "w";
  EXPECT_EQ(bare, expected);
}

TEST(SnapshotJson, NullIsNoValueWhereNoneIsLegal) {
  const Workload bare = workload(
      R"(,"vcpus":null,"allowed_cpus":null,"cpu_quota":null,"memory_high_bytes":null,"deadline":null,"leaf_since":null,"pinned_at":null,)"
      R"("spark":null,"spared":null,"original":null,"held":null,"fixed":null,"straggled_at":null,"pressed_at":null,"progressed_at":null,"evicted_at":null,"cpu_throttled":null,"cpu_pressure":null,"cpu_time_s":null,"cache_bytes":null)");
  EXPECT_EQ(bare, workload(""));
}

TEST(SnapshotJson, NullIsTheWrongTypeElsewhere) {
  EXPECT_EQ(error_of(workload_document(R"(,"cpus":null)")),
            "$.workloads[0].cpus: expected a string, found null");
  EXPECT_EQ(error_of(workload_document(R"(,"priority":null)")),
            "$.workloads[0].priority: expected an integer, found null");
}

TEST(SnapshotJson, ReadsEveryMemberOfAWorkload) {
  const Workload read = workload(
      R"(,"service":"s","vcpus":4,"memory_request_bytes":5,"cpus":"0-1","allowed_cpus":"0-3","cpu_quota":1.5,)"
      R"("memory_high_bytes":6,"priority":-7,"evictable":true,"created":8.5,"leaf_since":8.75,"deadline":9.5,"pinned_at":10.5,)"
      R"("spark":{"app":"a","role":"executor","executor":"1"},"spared":"is shared","gpus":["g0"],)"
      R"("original":{"cpu_quota":2.5,"memory_high_bytes":null},)"
      R"("held":{"cpu":{"cause":"preempted","since":20,"changed_at":21.5},"memory":{"cause":"extended","since":22}},)"
      R"("fixed":{"cpu":false,"memory":true,"life":true},)"
      R"("straggled_at":23.5,"pressed_at":23.75,"progressed_at":23.875,"evicted_at":22.5,"cpu_throttled":0.25,"cpu_pressure":0.75,"cpu_time_s":12.5,"cache_bytes":4096,"progress":[{"time":24,"fraction":0.5},{"time":25,"fraction":1}],)"
      R"("usage":[{"time":1,"cpu":0.5,"memory_bytes":2,"progress":0.25,"runq_latency_us":3.5,"runq_latency_p50_us":1.5,"llc_mpki":4.5}])");
  Workload expected;
  expected.id = "w";
  expected.service = "s";
  expected.vcpus = 4;
  expected.memory_request_bytes = 5;
  expected.cpus = {0, 1};
  expected.allowed_cpus = CpuSet::range(0, 3);
  expected.cpu_quota_cores = 1.5;
  expected.memory_high_bytes = 6;
  expected.priority = -7;
  expected.evictable = true;
  expected.created = 8.5;
  expected.leaf_since = 8.75;
  expected.deadline = 9.5;
  expected.pinned_at = 10.5;
  expected.spark = SparkIdentity{"a", SparkRole::executor, "1"};
  expected.spared = "is shared";
  expected.gpus = {"g0"};
  expected.original = OriginalLimits{2.5, std::nullopt};
  expected.held_cpu = HeldLimit{HeldCause::preempted, 20, 21.5};
  expected.held_memory = HeldLimit{HeldCause::extended, 22, 22};
  expected.fixed = {.cpu = false, .memory = true, .life = true};
  expected.evicted_at = 22.5;
  expected.straggled_at = 23.5;
  expected.pressed_at = 23.75;
  expected.progressed_at = 23.875;
  expected.cpu_throttled = 0.25;
  expected.cpu_pressure = 0.75;
  expected.cpu_time_s = 12.5;
  expected.cache_bytes = 4096;
  expected.progress = {{24, 0.5}, {25, 1}};
  expected.usage = {{1, 0.5, 2, 0.25, 3.5, 1.5, 4.5}};
  EXPECT_EQ(read, expected);
}

TEST(SnapshotJson, MemoryOfASampleMayBeUnknown) {
  for (const char* sample : {R"({"time":1})", R"({"time":1,"memory_bytes":null})"}) {
    const Workload read = workload(std::string(R"(,"usage":[)") + sample + "]");
    ASSERT_EQ(read.usage.size(), 1U);
    EXPECT_EQ(read.usage[0].memory_bytes, std::nullopt) << sample;
  }
  EXPECT_EQ(workload(R"(,"usage":[{"time":1,"memory_bytes":0}])").usage[0].memory_bytes, 0U);
}

TEST(SnapshotJson, MemoryIsAllAvailableUnlessSaid) {
  EXPECT_EQ(parsed(snapshot_document("", R"(,"memory":{"total_bytes":5})")).snapshot.memory.available_bytes,
            5u);
}

TEST(SnapshotJson, ALatencySensitiveWorkloadMayAskNoCpus) {
  EXPECT_EQ(error_of(snapshot_document(R"({"id":"w","class":"latency-sensitive"})")), "accepted");
}

TEST(SnapshotJson, WorkloadsComeBackAscendingById) {
  const Snapshot snapshot = parsed(snapshot_document(R"({"id":"b","class":"best-effort"},{"id":"a","class":)"
                                                     R"("best-effort"})"))
                                .snapshot;
  EXPECT_EQ(snapshot.workloads[0].id, "a");
  EXPECT_EQ(snapshot.workloads[1].id, "b");
}

TEST(SnapshotJson, UnknownMembersAreWarningsWithTheirPath) {
  const ParsedSnapshot snapshot =
      parsed(snapshot_document(R"({"id":"w","class":"best-effort","colour":1,"usage":[{"time":1,"gpu":2}]})",
                               R"(,"x y":0,"memory":{"swap":1})"));
  EXPECT_THAT(snapshot.warnings, ElementsAre("$.memory.swap: unknown member, ignored",
                                             "$.workloads[0].usage[0].gpu: unknown member, ignored",
                                             "$.workloads[0].colour: unknown member, ignored",
                                             "$[\"x y\"]: unknown member, ignored"));
}

TEST(SnapshotJson, AFloodOfWarningsIsCounted) {
  std::string members;
  for (int index = 0; index < 1000; ++index) members += ",\"m" + std::to_string(index) + "\":0";
  const ParsedSnapshot snapshot = parsed(snapshot_document("", members));
  EXPECT_EQ(snapshot.warnings.size(), 101u);
  EXPECT_EQ(snapshot.warnings.back(), "and 900 more warnings");
}

TEST(SnapshotJson, WrongTypes) {
  EXPECT_EQ(error_of(workload_document(R"(,"vcpus":"4")")),
            "$.workloads[0].vcpus: expected an integer, found a string");
  EXPECT_EQ(error_of(workload_document(R"(,"cpu_quota":true)")),
            "$.workloads[0].cpu_quota: expected a number, found a boolean");
  EXPECT_EQ(error_of(workload_document(R"(,"evictable":0)")),
            "$.workloads[0].evictable: expected true or false, found a number");
  EXPECT_EQ(error_of(workload_document(R"(,"usage":{})")),
            "$.workloads[0].usage: expected an array, found an object");
  EXPECT_EQ(error_of(workload_document(R"(,"spark":"a")")),
            "$.workloads[0].spark: expected an object, found a string");
  EXPECT_EQ(error_of(snapshot_document("3")), "$.workloads[0]: expected an object, found a number");
  EXPECT_EQ(error_of(snapshot_document("", R"(,"services":[])")),
            "$.services: expected an object, found an array");
}

TEST(SnapshotJson, AnUnknownClass) {
  EXPECT_EQ(error_of(snapshot_document(R"({"id":"w","class":"LS"})")),
            "$.workloads[0].class: expected one of latency-sensitive, best-effort, found \"LS\"");
}

TEST(SnapshotJson, NegativeNumbers) {
  for (const char* member :
       {"vcpus", "memory_request_bytes", "cpu_quota", "memory_high_bytes", "created", "deadline"})
    EXPECT_THAT(error_of(workload_document(std::string(",\"") + member + "\":-1")),
                StartsWith(std::string("$.workloads[0].") + member + ": -1 is not between"));
  EXPECT_THAT(error_of(snapshot_document("", R"(,"time":-0.5)")),
              StartsWith("$.time: -0.5 is not between 0 and"));
  EXPECT_THAT(error_of(snapshot_document("", R"(,"load1":-1e-300)")), StartsWith("$.load1: -1e-300"));
}

TEST(SnapshotJson, IntegersThatAreNot) {
  EXPECT_EQ(error_of(workload_document(R"(,"vcpus":2.5)")),
            "$.workloads[0].vcpus: expected an integer, found 2.5");
  EXPECT_EQ(workload(R"(,"vcpus":2.0)").vcpus, 2);
  EXPECT_EQ(workload(R"(,"memory_high_bytes":1e9)").memory_high_bytes, 1'000'000'000u);
}

TEST(SnapshotJson, AbsurdNumbers) {
  EXPECT_EQ(error_of(workload_document(R"(,"vcpus":8193)")),
            "$.workloads[0].vcpus: 8193 is not between 1 and 8192");
  EXPECT_EQ(error_of(workload_document(R"(,"vcpus":0)")),
            "$.workloads[0].vcpus: 0 is not between 1 and 8192");
  EXPECT_THAT(error_of(workload_document(R"(,"vcpus":4294967297)")), HasSubstr("4294967297 is not between"));
  EXPECT_THAT(error_of(workload_document(R"(,"vcpus":1e300)")), HasSubstr("is not between"));
  EXPECT_THAT(error_of(workload_document(R"(,"vcpus":18446744073709551616)")), HasSubstr("is not between"));
  EXPECT_THAT(error_of(workload_document(R"(,"memory_request_bytes":18446744073709551615)")),
              HasSubstr("is not between 0 and 9007199254740992"));
  EXPECT_THAT(error_of(workload_document(R"(,"memory_request_bytes":9007199254740993)")),
              HasSubstr("is not between"));
  EXPECT_EQ(workload(R"(,"memory_request_bytes":9007199254740992)").memory_request_bytes, kMaxBytes);
  EXPECT_THAT(error_of(workload_document(R"(,"cpu_quota":1e7)")), HasSubstr("is not between"));
  EXPECT_THAT(error_of(workload_document(R"(,"priority":1000001)")), HasSubstr("is not between"));
  EXPECT_THAT(error_of(snapshot_document("", R"(,"time":1790000000000)")), StartsWith("$.time: "));
}

TEST(SnapshotJson, AQuotaOfNothing) {
  EXPECT_EQ(error_of(workload_document(R"(,"cpu_quota":0)")),
            "$.workloads[0].cpu_quota: 0 is not a positive number");
}

TEST(SnapshotJson, ProgressOutsideItsRange) {
  EXPECT_EQ(error_of(workload_document(R"(,"usage":[{"time":1,"progress":1.01}])")),
            "$.workloads[0].usage[0].progress: 1.01 is not between 0 and 1");
  EXPECT_THAT(error_of(workload_document(R"(,"usage":[{"time":1,"progress":-0.1}])")),
              HasSubstr("-0.1 is not"));
  EXPECT_EQ(*workload(R"(,"usage":[{"time":1,"progress":1}])").usage[0].progress, 1);
}

TEST(SnapshotJson, AReportOfProgressOutsideItsRangeOrIncomplete) {
  EXPECT_EQ(error_of(workload_document(R"(,"progress":[{"time":1,"fraction":1.01}])")),
            "$.workloads[0].progress[0].fraction: 1.01 is not between 0 and 1");
  EXPECT_THAT(error_of(workload_document(R"(,"progress":[{"time":1,"fraction":-0.1}])")),
              HasSubstr("-0.1 is not"));
  EXPECT_EQ(error_of(workload_document(R"(,"progress":[{"time":1}])")),
            "$.workloads[0].progress[0].fraction: missing");
  EXPECT_EQ(error_of(workload_document(R"(,"progress":[{"fraction":1}])")),
            "$.workloads[0].progress[0].time: missing");
  EXPECT_EQ(error_of(workload_document(R"(,"progress":0.5)")),
            "$.workloads[0].progress: expected an array, found a number");
}

TEST(SnapshotJson, AHeldLimitNeedsACauseAndItsTime) {
  EXPECT_EQ(error_of(workload_document(R"(,"held":{"cpu":{"since":1}})")),
            "$.workloads[0].held.cpu.cause: missing");
  EXPECT_EQ(error_of(workload_document(R"(,"held":{"cpu":{"cause":"lent"}})")),
            "$.workloads[0].held.cpu.since: missing");
  EXPECT_THAT(error_of(workload_document(R"(,"held":{"memory":{"cause":"stolen","since":1}})")),
              StartsWith("$.workloads[0].held.memory.cause: expected one of extended, lent, preempted"));
  EXPECT_EQ(error_of(workload_document(R"(,"held":{"cpu":{"cause":"lent","since":2,"changed_at":1}})")),
            "$.workloads[0].held.cpu.changed_at: 1 is before since, 2");
}

TEST(SnapshotJson, AShareOfTimeAboveAll) {
  EXPECT_EQ(error_of(workload_document(R"(,"cpu_throttled":1.5)")),
            "$.workloads[0].cpu_throttled: 1.5 is not between 0 and 1");
}

TEST(SnapshotJson, CpuTimeAndCacheBelowNothing) {
  EXPECT_EQ(error_of(workload_document(R"(,"cpu_time_s":-1)")),
            "$.workloads[0].cpu_time_s: -1 is not between 0 and 1000000000000000");
  EXPECT_THAT(error_of(workload_document(R"(,"cache_bytes":-1)")),
              StartsWith("$.workloads[0].cache_bytes: "));
}

TEST(SnapshotJson, WhatOnlyStragglersBringIsNotWrittenWithoutThem) {
  const std::string text = to_json(parsed(workload_document("")).snapshot);
  for (const char* member : {"evicted_at", "eviction_ended_at", "held", "fixed", "straggled_at", "pressed_at",
                             "cpu_throttled", "progress", "progressed_at", "straggler_seen_at"})
    EXPECT_EQ(text.find(member), std::string::npos) << member;
  EXPECT_EQ(parsed(snapshot_document("", R"(,"straggler_seen_at":7.5)")).snapshot.straggler_seen_at, 7.5);
  EXPECT_EQ(parsed(snapshot_document("", R"(,"spark_evicted":{"app-1":7.5})")).snapshot.spark_evicted,
            (std::map<std::string, double>{{"app-1", 7.5}}));
  EXPECT_EQ(parsed(snapshot_document("", R"(,"eviction_ended_at":7.5)")).snapshot.eviction_ended_at, 7.5);
}

TEST(SnapshotJson, HasTheServicesMemoryAndTheDurationsOfEvictions) {
  const auto snapshot =
      parsed(snapshot_document("", R"(,"memory_readings":[[7.5,4096],[9,0]],"eviction_durations":[12,3.5])"))
          .snapshot;
  EXPECT_EQ(snapshot.memory_readings, (std::vector<MemoryReading>{{7.5, 4096}, {9, 0}}));
  EXPECT_EQ(snapshot.eviction_durations_s, (std::vector<double>{12, 3.5}));
  Snapshot later = snapshot;
  later.wall_ahead_s = 100;
  EXPECT_EQ(parsed(to_json(later)).snapshot.memory_readings.front().time, 107.5) << "of the wall clock";
}

TEST(SnapshotJson, RefusesReadingsThatAreNone) {
  const auto error = [](const std::string& members) { return error_of(snapshot_document("", members)); };
  EXPECT_EQ(error(R"(,"memory_readings":[[1]])"), "$.memory_readings[0]: not a time and an amount of memory");
  EXPECT_EQ(error(R"(,"memory_readings":[[1,2,3]])"),
            "$.memory_readings[0]: not a time and an amount of memory");
  EXPECT_EQ(error(R"(,"memory_readings":[[2,1],[2,1]])"),
            "$.memory_readings[1]: not later than the reading before");
  EXPECT_THAT(error(R"(,"memory_readings":[[-1,1]])"), StartsWith("$.memory_readings[0][0]: "));
  EXPECT_THAT(error(R"(,"memory_readings":[[1,-1]])"), StartsWith("$.memory_readings[0][1]: "));
  EXPECT_THAT(error(R"(,"memory_readings":{})"), StartsWith("$.memory_readings: "));
  EXPECT_THAT(error(R"(,"eviction_durations":[-1])"), StartsWith("$.eviction_durations[0]: "));
  std::string many = R"(,"memory_readings":[[0,1])";
  for (std::size_t i = 1; i <= kMostMemoryReadings; ++i) many += ",[" + std::to_string(i) + ",1]";
  EXPECT_EQ(error(many + "]"), "$.memory_readings[600]: there are more than 600 readings");
  std::string durations = R"(,"eviction_durations":[0)";
  for (std::size_t i = 1; i <= kMostEvictionDurations; ++i) durations += ",1";
  EXPECT_EQ(error(durations + "]"), "$.eviction_durations[20]: there are more than 20 durations");
}

TEST(SnapshotJson, PressureOutsideItsRange) {
  EXPECT_EQ(error_of(snapshot_document("", R"(,"services":{"web":{"pressure":1.5}})")),
            "$.services.web.pressure: 1.5 is not between 0 and 1");
}

TEST(SnapshotJson, AModelWithAnImpossibleOrMissingCoefficient) {
  EXPECT_THAT(error_of(snapshot_document("", R"(,"services":{"web":{"model":{"b0":0,"k1":-0.1,"k2":0}}})")),
              StartsWith("$.services.web.model.k1: -0.1"));
  EXPECT_EQ(error_of(snapshot_document("", R"(,"services":{"web":{"model":{"b0":0,"k1":0.1}}})")),
            "$.services.web.model.k2: missing");
  EXPECT_EQ(error_of(snapshot_document("", R"(,"services":{"web":{"model":{"b0":-0.1,"k1":0,"k2":0}}})")),
            "accepted");
}

TEST(SnapshotJson, MoreMemoryAvailableThanThereIs) {
  EXPECT_EQ(error_of(snapshot_document("", R"(,"memory":{"total_bytes":5,"available_bytes":6})")),
            "$.memory.available_bytes: 6 is above total_bytes, 5");
}

TEST(SnapshotJson, CpulistGarbage) {
  EXPECT_THAT(error_of(workload_document(R"(,"cpus":"0-x")")), StartsWith("$.workloads[0].cpus: '0-x'"));
  EXPECT_THAT(error_of(workload_document(R"(,"cpus":"8192")")), StartsWith("$.workloads[0].cpus: "));
  EXPECT_THAT(error_of(workload_document(R"(,"allowed_cpus":"3-1")")),
              StartsWith("$.workloads[0].allowed_cpus: "));
  EXPECT_THAT(error_of(workload_document(R"(,"cpus":[0])")),
              StartsWith("$.workloads[0].cpus: expected a string"));
}

TEST(SnapshotJson, NamesThatNoCgroupHas) {
  EXPECT_EQ(error_of(snapshot_document(R"({"id":"","class":"best-effort"})")), "$.workloads[0].id: is empty");
  EXPECT_THAT(error_of(snapshot_document(R"({"id":"a\nb","class":"best-effort"})")),
              StartsWith("$.workloads[0].id: \"a\\nb\" holds a control character"));
  EXPECT_THAT(error_of(snapshot_document(R"({"id":"a\u0000","class":"best-effort"})")), HasSubstr("control"));
  EXPECT_THAT(error_of(workload_document(",\"service\":\"" + std::string(4097, 'x') + "\"")),
              StartsWith("$.workloads[0].service: 4097 bytes"));
}

TEST(SnapshotJson, AnExecutorWithoutItsId) {
  EXPECT_EQ(error_of(workload_document(R"(,"spark":{"app":"a","role":"executor"})")),
            "$.workloads[0].spark.executor: missing; the role executor needs its id");
  EXPECT_EQ(error_of(workload_document(R"(,"spark":{"app":"a","role":"driver"})")), "accepted");
  EXPECT_THAT(error_of(workload_document(R"(,"spark":{"app":"a","role":"worker"})")),
              StartsWith("$.workloads[0].spark.role: expected one of executor, driver"));
}

TEST(SnapshotJson, WritesTheSameBytesWhateverTheOrder) {
  Snapshot one =
      parsed(snapshot_document(R"({"id":"a","class":"best-effort"},{"id":"b","class":"best-effort"})"))
          .snapshot;
  Snapshot other = one;
  std::swap(other.workloads[0], other.workloads[1]);
  EXPECT_EQ(to_json(one), to_json(other));
}

TEST(SnapshotJson, WritesOneCompactLineThatStartsWithTheSchema) {
  const std::string text = to_json(parsed(snapshot_document("")).snapshot);
  EXPECT_THAT(
      text,
      StartsWith(
          R"({"schema":"berth.snapshot/1","host":"","time":0,"load1":0,"topology":{"cpus":[{"cpu":0,"core":0,)"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(text.find(' '), std::string::npos);
}

TEST(SnapshotJson, BytesThatAreNotUtf8DoNotStopTheWriter) {
  Snapshot snapshot = parsed(workload_document("")).snapshot;
  snapshot.workloads[0].id =
      "a\xFF"
      "b\xC3";
  EXPECT_EQ(parsed(to_json(snapshot)).snapshot.workloads[0].id,
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
}

TEST(SnapshotJson, WhatIsNotFiniteIsWrittenAsNull) {
  Snapshot snapshot = parsed(workload_document("")).snapshot;
  snapshot.workloads[0].deadline = HUGE_VAL;
  EXPECT_EQ(parsed(to_json(snapshot)).snapshot.workloads[0].deadline, std::nullopt);
}

}  // namespace
}  // namespace berth::model
