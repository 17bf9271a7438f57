// SPDX-License-Identifier: Apache-2.0
#include "integrations/extender/snapshot_bounds.h"

#include "model/json.h"
#include "model/json_text.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::extender {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// `llc` vCPUs to a last-level cache, `threads` to a core, `numa` to a node.
json host(int vcpus, int llc = 16, int threads = 2, int numa = 64) {
  json cpus = json::array();
  for (int cpu = 0; cpu < vcpus; ++cpu)
    cpus.push_back(
        {{"cpu", cpu}, {"core", cpu / threads}, {"llc", cpu / llc}, {"numa", cpu / numa}, {"socket", 0}});
  return {{"schema", "berth.snapshot/1"},
          {"host", "n1"},
          {"time", 1000},
          {"topology", {{"cpus", cpus}}},
          {"memory", {{"total_bytes", 68719476736}}},
          {"services", json::object()},
          {"workloads", json::array()},
          {"pending", json::array()}};
}

// Services with one vCPU each, pinned to the first vCPUs from `pin` on, or not pinned.
void add_instances(json& document, int count, int pin = -1) {
  for (int i = 0; i < count; ++i) {
    json workload = {{"id", "w" + std::to_string(i)}, {"class", "latency-sensitive"}, {"vcpus", 1}};
    if (pin >= 0) workload["cpus"] = std::to_string(pin + i);
    document["workloads"].push_back(workload);
  }
}

std::string refusal(const json& document) {
  const auto parsed = model::parse_snapshot(model::json_text(document));
  EXPECT_TRUE(parsed) << parsed.error().message();
  if (!parsed) return "";
  const auto checked = check_bounds(parsed->snapshot, policies::PolicySettings());
  return checked ? "" : checked.error().message();
}

TEST(SnapshotBounds, ALargeRealHostIsTaken) {
  json document = host(512);
  add_instances(document, 400);
  for (int i = 0; i < 600; ++i)
    document["workloads"].push_back({{"id", "b" + std::to_string(i)},
                                     {"class", "best-effort"},
                                     {"allowed_cpus", std::to_string(i % 512)}});
  for (int i = 0; i < 2000; ++i) document["services"]["service-" + std::to_string(i)] = {{"pressure", 0.5}};
  EXPECT_EQ(refusal(document), "");
  json larger = host(1024, 16);
  add_instances(larger, 200);
  EXPECT_EQ(refusal(larger), "");
}

TEST(SnapshotBounds, ASearchThatWouldTakeLongIsRefused) {
  json document = host(512, 2);
  add_instances(document, 100);
  EXPECT_EQ(refusal(document), "");
  document["workloads"] = json::array();
  add_instances(document, 200);
  EXPECT_THAT(refusal(document),
              HasSubstr("host n1: 200 latency-sensitive workloads have no pin that "
                        "stands, on 512 vCPUs in 258 domains; a search takes 26419200 steps"));
  // Those that have a pin need no search.
  document["workloads"] = json::array();
  add_instances(document, 200, 0);
  EXPECT_EQ(refusal(document), "");
}

TEST(SnapshotBounds, APinThatDoesNotStandNeedsASearch) {
  json document = host(512, 2);
  add_instances(document, 200, 0);
  for (json& workload : document["workloads"]) workload["cpus"] = "0";
  EXPECT_THAT(refusal(document), HasSubstr("199 latency-sensitive workloads"));
  for (json& workload : document["workloads"]) workload["vcpus"] = 2;
  EXPECT_THAT(refusal(document), HasSubstr("200 latency-sensitive workloads"));
}

TEST(SnapshotBounds, APendingInstanceNeedsASearch) {
  json document = host(1024, 2);
  for (int i = 0; i < 40; ++i)
    document["pending"].push_back(
        {{"id", "p" + std::to_string(i)}, {"class", "latency-sensitive"}, {"vcpus", 1}});
  EXPECT_THAT(refusal(document), HasSubstr("40 latency-sensitive workloads have no pin that stands"));
}

TEST(SnapshotBounds, EachNumberHasABound) {
  EXPECT_THAT(refusal(host(1025)), HasSubstr("1025 vCPUs, and 1024 are the most"));
  EXPECT_THAT(refusal(host(17, 17, 17)), HasSubstr("17 threads on one core, and 16 are the most"));
  EXPECT_THAT(refusal(host(65, 65, 1, 1)), HasSubstr("65 NUMA nodes, and 64 are the most"));
  json gpus = host(2);
  for (int i = 0; i < 65; ++i) gpus["topology"]["gpus"].push_back({{"id", "g" + std::to_string(i)}});
  EXPECT_THAT(refusal(gpus), HasSubstr("65 GPUs, and 64 are the most"));
  json instances = host(8);
  add_instances(instances, 1001);
  EXPECT_THAT(refusal(instances), HasSubstr("1001 latency-sensitive workloads, and 1000 are the most"));
  json workloads = host(8);
  for (int i = 0; i < 4001; ++i)
    workloads["workloads"].push_back({{"id", std::to_string(i)}, {"class", "best-effort"}});
  EXPECT_THAT(refusal(workloads), HasSubstr("4001 workloads, and 4000 are the most"));
  json pending = host(8);
  for (int i = 0; i < 65; ++i)
    pending["pending"].push_back({{"id", std::to_string(i)}, {"class", "best-effort"}, {"vcpus", 1}});
  EXPECT_THAT(refusal(pending), HasSubstr("65 pending workloads, and 64 are the most"));
  json sets = host(64, 64, 1, 1);
  for (int i = 0; i < 157; ++i)
    sets["workloads"].push_back({{"id", std::to_string(i)}, {"class", "best-effort"}, {"allowed_cpus", "1"}});
  EXPECT_THAT(refusal(sets), HasSubstr("10048 workloads with allowed vCPUs times NUMA nodes, and 10000"));
  json names = host(8);
  for (int i = 0; i < 1000; ++i)
    names["services"][std::to_string(i) + std::string(3000, 'n')] = json::object();
  EXPECT_THAT(refusal(names), HasSubstr("bytes that would be kept, and 2097152 are the most"));
}

TEST(SnapshotBounds, AHostHasANameOfANode) {
  json document = host(1);
  document["host"] = "";
  EXPECT_THAT(refusal(document), HasSubstr("the name of its host has 0 bytes"));
  document["host"] = std::string(254, 'n');
  EXPECT_THAT(refusal(document), HasSubstr("the name of its host has 254 bytes"));
}

TEST(SnapshotBounds, TextIsLimitedBeforeItIsRead) {
  EXPECT_TRUE(check_text(std::string(kMaxSnapshotBytes, ' ')));
  EXPECT_FALSE(check_text(std::string(kMaxSnapshotBytes + 1, ' ')));
  EXPECT_TRUE(check_text(std::string(kMaxSnapshotValues, ',')));
  for (const char c : {',', '[', '{'}) EXPECT_FALSE(check_text(std::string(kMaxSnapshotValues + 1, c)));
}

}  // namespace
}  // namespace berth::extender
