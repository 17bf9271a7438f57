// SPDX-License-Identifier: Apache-2.0
// Errors that only show when the parts of a snapshot are compared.
#include "model/json.h"
#include "tests/unit/model/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::model {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::snapshot_document;
using testing::stages_document;
using ::testing::StartsWith;
using testing::workload_document;

TEST(SnapshotChecks, AnUnknownCpuInCpus) {
  EXPECT_EQ(error_of(workload_document(R"(,"cpus":"6-9")")),
            "$.workloads[0].cpus: vCPU 8-9 is not in the topology, which has 0-7");
}

TEST(SnapshotChecks, AllowedCpusMayNameOnesThatAreNotThere) {
  // A unit's AllowedCPUs= may look ahead to vCPUs that are plugged in later.
  EXPECT_EQ(error_of(workload_document(R"(,"allowed_cpus":"0-1023")")), "accepted");
}

TEST(SnapshotChecks, AWorkloadTwice) {
  EXPECT_EQ(error_of(snapshot_document(R"({"id":"b","class":"best-effort"},{"id":"a","class":"best-effort"},)"
                                       R"({"id":"b","class":"best-effort"})")),
            "$.workloads[2].id: another workload has this id already, at $.workloads[0]");
}

TEST(SnapshotChecks, APendingWorkloadThatRunsAlready) {
  EXPECT_EQ(error_of(snapshot_document(R"({"id":"a","class":"best-effort"})",
                                       R"(,"pending":[{"id":"a","class":"best-effort"}])")),
            "$.pending[0].id: another workload has this id already, at $.workloads[0]");
}

TEST(SnapshotChecks, APendingWorkloadTwice) {
  EXPECT_THAT(error_of(snapshot_document("", R"(,"pending":[{"id":"a","class":"best-effort"},)"
                                             R"({"id":"a","class":"best-effort"}])")),
              StartsWith("$.pending[1].id: "));
}

TEST(SnapshotChecks, SamplesOutOfOrder) {
  EXPECT_EQ(error_of(workload_document(R"(,"usage":[{"time":2},{"time":1}])")),
            "$.workloads[0].usage[1].time: 1 is before the sample above, 2");
}

TEST(SnapshotChecks, SamplesOfOneInstantAreLegal) {
  EXPECT_EQ(error_of(workload_document(R"(,"usage":[{"time":2},{"time":2}])")), "accepted");
}

TEST(SnapshotChecks, ReportsOfProgressOutOfOrder) {
  EXPECT_EQ(error_of(workload_document(R"(,"progress":[{"time":2,"fraction":0},{"time":1,"fraction":1}])")),
            "$.workloads[0].progress[1].time: 1 is before the report above, 2");
}

TEST(SnapshotChecks, ReportsOfOneInstantAndProgressThatFallsAreLegal) {
  EXPECT_EQ(error_of(workload_document(R"(,"progress":[{"time":2,"fraction":1},{"time":2,"fraction":0}])")),
            "accepted");
}

TEST(SnapshotChecks, AGpuThatIsNotThere) {
  EXPECT_EQ(error_of(workload_document(R"(,"gpus":["g0","g1"])")),
            "$.workloads[0].gpus[1]: GPU \"g1\" is not in the topology");
}

TEST(SnapshotChecks, AGpuTwice) {
  EXPECT_EQ(error_of(workload_document(R"(,"gpus":["g0","g0"])")),
            "$.workloads[0].gpus[1]: GPU \"g0\" is given twice");
}

TEST(SnapshotChecks, AHolderThatIsNotThere) {
  const std::string document =
      R"({"schema":"berth.snapshot/1","topology":{"cpus":[{"cpu":0}],"gpus":[{"id":"g","holder":"w"}]},"workloads":[)";
  EXPECT_EQ(error_of(document + "]}"), "$.topology.gpus[0].holder: there is no workload \"w\"");
  EXPECT_EQ(error_of(document + R"({"id":"w","class":"best-effort"}]})"), "accepted");
}

TEST(SnapshotChecks, AnApplicationTwice) {
  EXPECT_EQ(error_of(snapshot_document("", R"(,"spark_apps":[{"id":"a"},{"id":"a"}])")),
            "$.spark_apps[1].id: another application has this id already, at $.spark_apps[0]");
}

TEST(SnapshotChecks, AStageTwice) {
  EXPECT_EQ(error_of(stages_document(R"({"id":1,"partitions":1},{"id":1,"partitions":1})")),
            "$.spark_apps[0].stages[1].id: another stage has this id already, at $.spark_apps[0].stages[0]");
}

TEST(SnapshotChecks, MoreTasksThanPartitions) {
  EXPECT_EQ(error_of(stages_document(R"({"id":0,"partitions":1,"tasks":[{"executor":"1","duration_s":1},)"
                                     R"({"executor":"1","duration_s":1}]})")),
            "$.spark_apps[0].stages[0].tasks: 2 tasks completed of 1 partitions");
}

TEST(SnapshotChecks, AStageWithoutPartitions) {
  EXPECT_THAT(error_of(stages_document(R"({"id":0,"partitions":0})")),
              StartsWith("$.spark_apps[0].stages[0].partitions: 0 is not between 1"));
}

TEST(SnapshotChecks, AParentThatIsNotThere) {
  EXPECT_EQ(error_of(stages_document(R"({"id":0,"partitions":1,"parents":[7]})")),
            "$.spark_apps[0].stages[0].parents[0]: there is no stage 7");
}

TEST(SnapshotChecks, AParentListedLaterIsFine) {
  EXPECT_EQ(error_of(stages_document(R"({"id":2,"partitions":1,"parents":[1]},{"id":1,"partitions":1})")),
            "accepted");
}

TEST(SnapshotChecks, AStageThatIsItsOwnParent) {
  EXPECT_EQ(error_of(stages_document(R"({"id":4,"partitions":1,"parents":[4]})")),
            "$.spark_apps[0].stages[0].parents: stage 4 is its own ancestor");
}

TEST(SnapshotChecks, AStageThatIsItsOwnGrandparent) {
  // Stage 0 hangs below the cycle of 1 and 2 without being on it.
  EXPECT_THAT(error_of(stages_document(
                  R"({"id":0,"partitions":1,"parents":[1]},{"id":1,"partitions":1,"parents":[2]},)"
                  R"({"id":2,"partitions":1,"parents":[1]})")),
              ::testing::AnyOf("$.spark_apps[0].stages[1].parents: stage 1 is its own ancestor",
                               "$.spark_apps[0].stages[2].parents: stage 2 is its own ancestor"));
}

TEST(SnapshotChecks, ALongChainOfStagesIsRead) {
  std::string stages = R"({"id":0,"partitions":1})";
  for (int id = 1; id < 20'000; ++id)
    stages +=
        R"(,{"id":)" + std::to_string(id) + R"(,"partitions":1,"parents":[)" + std::to_string(id - 1) + "]}";
  EXPECT_EQ(error_of(stages_document(stages)), "accepted");
}

}  // namespace
}  // namespace berth::model
