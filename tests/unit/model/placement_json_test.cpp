// SPDX-License-Identifier: Apache-2.0
// Requests, rankings, and what snapshots say of GPUs that are asked for and of what is advertised.
#include "documents.h"
#include "model/json.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::model {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// `members`, each with a leading comma.
std::string request(const std::string& members) { return R"({"schema":"berth.request/1")" + members + "}"; }

std::string error_of_request(const std::string& members) {
  const auto parsed = parse_request(request(members));
  if (parsed) return "accepted";
  EXPECT_EQ(parsed.error().kind(), ErrorKind::invalid_input);
  return parsed.error().message();
}

std::string error_of_pending(const std::string& members) {
  return testing::error_of(
      testing::snapshot_document("", R"(,"pending":[{"id":"p","class":"best-effort")" + members + "}]"));
}

}  // namespace

TEST(RequestJson, NeedsVcpusOnly) {
  const auto parsed = parse_request(request(R"(,"vcpus":4)"));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  PendingWorkload expected;
  expected.id = "request";
  expected.service = "request";
  expected.vcpus = 4;
  EXPECT_EQ(parsed->request, expected);
  EXPECT_THAT(parsed->warnings, IsEmpty());
}

TEST(RequestJson, ReadsEveryMember) {
  const auto parsed = parse_request(
      request(R"(,"id":"new","service":"train","class":"best-effort","vcpus":4,"memory_request_bytes":1024,)"
              R"("gpus":2,"gpu_memory_bytes":2048,"gpu_model":"*H100*","gpu_exclusive":false)"));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_EQ(parsed->request, (PendingWorkload{.id = "new",
                                              .service = "train",
                                              .workload_class = WorkloadClass::best_effort,
                                              .vcpus = 4,
                                              .memory_request_bytes = 1024,
                                              .gpus = 2,
                                              .gpu_memory_bytes = 2048,
                                              .gpu_model = "*H100*",
                                              .gpu_exclusive = false}));
}

TEST(RequestJson, WarnsOfUnknownMembers) {
  const auto parsed = parse_request(request(R"(,"vcpus":4,"vcpu":3)"));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_THAT(parsed->warnings, ElementsAre("$.vcpu: unknown member, ignored"));
}

TEST(RequestJson, RefusalsNameTheirPath) {
  const auto starts = [](const char* path) { return ::testing::StartsWith(std::string(path) + ":"); };
  EXPECT_THAT(error_of_request(""), starts("$.vcpus"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":null)"), starts("$.vcpus"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":0)"), starts("$.vcpus"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":1.5)"), starts("$.vcpus"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":1,"class":"fast")"), starts("$.class"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":1,"id":"")"), starts("$.id"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":1,"gpus":-1)"), starts("$.gpus"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":1,"gpus":1,"gpu_memory_bytes":-1)"), starts("$.gpu_memory_bytes"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":1,"gpu_memory_bytes":1)"), starts("$.gpu_memory_bytes"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":1,"gpu_model":"H100")"), starts("$.gpu_model"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":1,"gpus":1,"gpu_model":"[H100")"), starts("$.gpu_model"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":1,"gpus":1,"gpu_exclusive":1)"), starts("$.gpu_exclusive"));
  EXPECT_THAT(error_of_request(R"(,"vcpus":1,"memory_request_bytes":-1)"), starts("$.memory_request_bytes"));
  const auto no_request = parse_request(R"({"schema":"berth.snapshot/1"})");
  ASSERT_FALSE(no_request.has_value());
  EXPECT_THAT(no_request.error().message(), starts("$.schema"));
}

TEST(SnapshotJson, PendingWorkMayAskForGpus) {
  EXPECT_EQ(error_of_pending(R"(,"gpus":2,"gpu_model":"*A10")"), "accepted");
  EXPECT_THAT(error_of_pending(R"(,"gpu_model":"*A10")"), ::testing::StartsWith("$.pending[0].gpu_model:"));
}

TEST(SnapshotJson, WhatIsAdvertisedIsChecked) {
  const auto error = [](const std::string& advertised) {
    return testing::error_of(testing::snapshot_document("", R"(,"advertised":)" + advertised));
  };
  EXPECT_EQ(error(R"({"cpu":{"factor":1.2,"state":"no-schedule"},"memory":null})"), "accepted");
  EXPECT_EQ(error(R"({"cpu":{"factor":1.2}})"), "accepted");
  EXPECT_THAT(error(R"({"cpu":{"factor":0.9}})"), ::testing::StartsWith("$.advertised.cpu.factor:"));
  EXPECT_THAT(error(R"({"cpu":{}})"), ::testing::StartsWith("$.advertised.cpu.factor:"));
  EXPECT_THAT(error(R"({"memory":{"factor":1,"state":"full"}})"),
              ::testing::StartsWith("$.advertised.memory.state:"));
}

TEST(RankingJson, HoldsTheRequestAndEveryBin) {
  Ranking ranking;
  ranking.request.id = "new";
  ranking.request.vcpus = 2;
  ranking.bins.fitting = {{.host = "a", .numa = 1, .cpus = {2, 3}, .gpus = {"g0"}, .reason = "why"}};
  ranking.bins.rejected = {{.host = "a", .numa = 0, .reason = "full"}};
  EXPECT_EQ(
      to_json(ranking),
      R"({"schema":"berth.rank/1","request":{"id":"new","class":"latency-sensitive","vcpus":2,)"
      R"("memory_request_bytes":0},"fitting":[{"host":"a","numa":1,"cpus":"2-3","gpus":["g0"],)"
      R"("cpu_left":0,"memory_left_bytes":0,"free_share":0,"gpus_total":0,"gpus_left":0,)"
      R"("gpu_memory_left_bytes":0,"score_before":null,"score_after":null,"rise":null,"reason":"why"}],"rejected":[{"host":"a","numa":0,"reason":"full"}]})");
}

TEST(RankingJson, LinksOfTheGpusAreCounted) {
  Ranking ranking;
  ranking.bins.fitting = {{.host = "a",
                           .cpus = {},
                           .gpus = {"g0", "g1", "g2"},
                           .gpu_links = {{GpuLink::sys, 2}, {GpuLink::nv, 1}},
                           .reason = "why"}};
  EXPECT_THAT(to_json(ranking),
              ::testing::HasSubstr(R"("gpus":["g0","g1","g2"],"gpu_links":{"NV":1,"SYS":2},"cpu_left":0)"));
}

TEST(RankingJson, ASetOfNodesNamesAllOfThem) {
  Ranking ranking;
  ranking.bins.fitting = {
      {.host = "a", .numa = 1, .numa_nodes = {1, 2}, .cpus = {2, 3}, .gpus = {}, .reason = "why"}};
  ranking.bins.rejected = {{.host = "b", .numa = 0, .numa_nodes = {0, 1, 2}, .reason = "full"}};
  const std::string text = to_json(ranking);
  EXPECT_THAT(text, ::testing::HasSubstr(R"({"host":"a","numa":1,"numa_nodes":"1-2","cpus":"2-3")"));
  EXPECT_THAT(text, ::testing::HasSubstr(R"({"host":"b","numa":0,"numa_nodes":"0-2","reason":"full"})"));
  EXPECT_EQ(nodes_text(nodes_of(ranking.bins.fitting[0])), "NUMA nodes 1-2");
  ranking.bins.fitting[0].numa_nodes = {};
  EXPECT_EQ(nodes_text(nodes_of(ranking.bins.fitting[0])), "NUMA node 1");
}

}  // namespace berth::model
