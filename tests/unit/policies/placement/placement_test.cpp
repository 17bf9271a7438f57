// SPDX-License-Identifier: Apache-2.0
#include "model/json.h"
#include "policies/decide.h"
#include "policies/placement/rank.h"
#include "tests/unit/policies/placement/gpu_hosts.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using testing::best_effort;
using ::testing::ElementsAre;
using testing::gpu;
using testing::gpu_host;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kGiB;
using testing::latency_sensitive;
using testing::pinned;
using testing::request;

model::BinRanking rank(const model::PendingWorkload& request, const std::vector<model::Snapshot>& snapshots,
                       const PolicySettings& settings = {}) {
  std::vector<Host> hosts;
  for (const model::Snapshot& snapshot : snapshots) {
    hosts.emplace_back(snapshot, settings);
    take_promised(hosts.back(), snapshot.pending);
  }
  return rank_bins(request, hosts);
}

// "a/0", best first.
std::vector<std::string> names(const model::BinRanking& ranking) {
  std::vector<std::string> list;
  for (const auto& bin : ranking.fitting) list.push_back(fmt::format("{}/{}", bin.host, bin.numa));
  return list;
}

std::string why_not(const model::BinRanking& ranking, const std::string& bin) {
  for (const auto& rejected : ranking.rejected) {
    if (fmt::format("{}/{}", rejected.host, rejected.numa) == bin) return rejected.reason;
  }
  return "not rejected";
}

model::Workload using_gpus(model::Workload workload, std::vector<std::string> gpus) {
  workload.gpus = std::move(gpus);
  return workload;
}

}  // namespace

TEST(Placement, SpreadsCpuWorkToWhereMostIsFree) {
  model::Snapshot a = gpu_host("a", {});
  model::Snapshot b = gpu_host("b", {});
  a.workloads = {pinned(latency_sensitive("web", 5), "0-3,8")};
  b.memory.available_bytes = 32 * kGiB;
  // Of CPU and memory: a/0 1 of 8 and 64, a/1 6 of 8 and 64, b/0 and b/1 6 of 8 and 32 of 64 GiB.
  const auto ranking = rank(request(2), {b, a});
  EXPECT_THAT(names(ranking), ElementsAre("a/1", "b/0", "b/1", "a/0"));
  EXPECT_DOUBLE_EQ(ranking.fitting[0].free_share, (6.0 / 8 + 1) / 2);
  EXPECT_DOUBLE_EQ(ranking.fitting[3].free_share, (1.0 / 8 + 1) / 2);
  EXPECT_EQ(ranking.fitting[3].cpu_left_cores, 1);
}

// Its service disturbs and is disturbed.
model::Snapshot with_loud_service(model::Snapshot host, const std::string& service) {
  host.services[service] = {.pressure = 0.9,
                            .model = model::InterferenceModel{.b0 = 0, .k1 = 0.5, .k2 = 0.2}};
  return host;
}

TEST(Placement, GoesWhereTheScoreOfTheHostRisesLeast) {
  model::Snapshot a = with_loud_service(with_loud_service(gpu_host("a", {}), "web"), "new");
  model::Snapshot b = a;
  b.host = "b";
  // Host a has more free, but loud neighbours on both sockets. Host b has a quiet one that takes more.
  a.workloads = {pinned(latency_sensitive("web", 2), "0-1"), pinned(latency_sensitive("web-2", 2), "4-5")};
  for (model::Workload& workload : a.workloads) workload.service = "web";
  b.workloads = {pinned(latency_sensitive("idle", 3), "0-2"), pinned(latency_sensitive("idle-2", 3), "4-6")};
  b.services["idle"] = b.services["idle-2"] = {.pressure = 0.0, .model = model::InterferenceModel()};
  const auto ranking = rank(request(2), {a, b});
  EXPECT_THAT(names(ranking), ElementsAre("b/0", "b/1", "a/0", "a/1"));
  EXPECT_LT(*ranking.fitting[0].rise, *ranking.fitting[2].rise);
  EXPECT_LT(ranking.fitting[0].free_share, ranking.fitting[2].free_share);
  const model::FittingBin& last = ranking.fitting[3];
  EXPECT_DOUBLE_EQ(*last.rise, *last.score_after - *last.score_before);
  EXPECT_THAT(last.reason, HasSubstr("score_node of the host"));
  // Best-effort work owns nothing, so it has no score.
  model::PendingWorkload batch = request(2);
  batch.workload_class = model::WorkloadClass::best_effort;
  EXPECT_EQ(rank(batch, {a}).fitting[0].rise, std::nullopt);
}

TEST(Placement, SpreadsTheInstancesOfAServiceOverHosts) {
  model::Snapshot a = gpu_host("a", {});
  a.workloads = {pinned(latency_sensitive("old", 1), "0")};
  a.workloads[0].service = "new";
  model::Snapshot b = gpu_host("b", {});
  b.workloads = {pinned(latency_sensitive("web", 6), "0-2,8-10"),
                 pinned(latency_sensitive("db", 6), "4-6,12-14")};
  EXPECT_THAT(names(rank(request(2), {a, b})), ElementsAre("b/0", "b/1", "a/1", "a/0"));
  EXPECT_THAT(rank(request(2), {a}).fitting[0].reason, HasSubstr("an instance of its service is there"));
  PolicySettings settings;
  settings.placement.spread_service = false;
  EXPECT_THAT(names(rank(request(2), {a, b}, settings)).front(), "a/1");
  // What is pending counts, too, and best-effort work of that name does not.
  a.workloads[0].workload_class = model::WorkloadClass::best_effort;
  EXPECT_THAT(names(rank(request(2), {a, b})).front(), "a/0");
  a.workloads.clear();
  a.pending = {request(1)};
  a.pending[0].id = "waiting";
  EXPECT_THAT(names(rank(request(2), {a, b})).front(), "b/0");
}

TEST(Placement, APromiseIsKept) {
  model::Snapshot host = gpu_host("a", {});
  host.pending = {request(2)};
  host.pending[0].told_cpus = testing::cpus("6,14");
  const model::Plan plan = decide(host, {});
  EXPECT_EQ(plan.findings.placement->pending.at("new").fitting[0].cpus, testing::cpus("6,14"));
  EXPECT_EQ(plan.findings.interference->instances.at("new").cpus, testing::cpus("6,14"));
  EXPECT_THAT(plan.findings.placement->pending.at("new").fitting[0].reason,
              HasSubstr("as its admission told"));
  // Work that comes without a reservation does not take them.
  for (const char* id : {"w1", "w2", "w3", "w4", "w5", "w6"})
    host.workloads.push_back(latency_sensitive(id, 2));
  const model::Plan beside = decide(host, {});
  EXPECT_EQ(beside.findings.interference->instances.at("new").cpus, testing::cpus("6,14"));
  EXPECT_EQ(beside.findings.interference->instances.size(), 7U);
  // Where a vCPU of them is not free any more, it goes elsewhere.
  host.workloads = {pinned(latency_sensitive("old", 1), "14")};
  const model::Plan moved = decide(host, {});
  EXPECT_EQ(moved.findings.interference->instances.at("new").cpus.size(), 2U);
  EXPECT_FALSE(moved.findings.interference->instances.at("new").cpus.contains(14));
}

TEST(Placement, WhoComesIsPinnedWhereItWasTold) {
  model::Snapshot host = gpu_host("a", {});
  host.workloads = {latency_sensitive("early", 2, 1), latency_sensitive("web", 2, 2)};
  host.workloads[1].told_cpus = testing::cpus("5,13");
  const model::Plan plan = decide(host, {});
  EXPECT_THAT(testing::pins(plan), ::testing::Contains("web=5,13"));
  for (const model::Action& action : plan.actions) {
    if (*action.workload() == "web") {
      EXPECT_THAT(action.reason, HasSubstr("placed on 5,13 of LLC 1, as its admission told"));
    }
  }
  // What it is told is good for the number that it declares alone, and does not move it once it is pinned.
  host.workloads[1].vcpus = 3;
  EXPECT_EQ(decide(host, {}).findings.interference->instances.at("web").cpus.size(), 3U);
  host.workloads[1] = pinned(host.workloads[1], "0-2");
  EXPECT_THAT(testing::pins(decide(host, {})), ::testing::Not(::testing::Contains(HasSubstr("web="))));
}

// "web=1"; "web=" to give it back.
std::vector<std::string> bonds(const model::Plan& plan) {
  std::vector<std::string> list;
  for (const model::Action& action : plan.actions) {
    if (action.attribute() != model::Attribute::memory_nodes) continue;
    const auto* bound = action.sets<model::MemoryNodes>();
    list.push_back(*action.workload() + "=" + (bound != nullptr ? bound->nodes.to_string() : ""));
  }
  return list;
}

TEST(Placement, MemoryFollowsThePinWhereItIsToldTo) {
  PolicySettings settings;
  model::Snapshot host = gpu_host("a", {});
  host.workloads = {best_effort("batch"), latency_sensitive("new", 2, 2),
                    pinned(latency_sensitive("web", 2), "4-5")};
  EXPECT_THAT(bonds(decide(host, settings)), IsEmpty()) << "off by default";
  settings.placement.memory_nodes = true;
  // The pin of this plan counts. Best-effort work is not bound.
  const model::Plan plan = decide(host, settings);
  EXPECT_THAT(bonds(plan), ElementsAre("new=0", "web=1"));
  EXPECT_THAT(plan.actions.back().reason, HasSubstr("vCPUs 4-5 are on NUMA node 1"));
  EXPECT_THAT(bonds(decide(host, settings, {"interference"})), IsEmpty());
  testing::apply(plan, host);
  host.workloads[1].memory_nodes = testing::cpus("0");
  host.workloads[2].memory_nodes = testing::cpus("1");
  EXPECT_THAT(bonds(decide(host, settings)), IsEmpty());
  // A bond that its owner made, or that the host refuses, is left alone.
  host.workloads[2].memory_nodes = {};
  host.workloads[2].fixed.memory_nodes = true;
  EXPECT_THAT(bonds(decide(host, settings)), IsEmpty());
  // It goes back with the pin, with the class and with the setting.
  host.workloads[1].workload_class = model::WorkloadClass::best_effort;
  EXPECT_THAT(bonds(decide(host, settings)), ElementsAre("new="));
  host.workloads[1].workload_class = model::WorkloadClass::latency_sensitive;
  settings.placement.memory_nodes = false;
  EXPECT_THAT(bonds(decide(host, settings)), ElementsAre("new="));
  // A host with one NUMA node has nothing to bind.
  settings.placement.memory_nodes = true;
  host.topology = testing::host({});
  host.workloads = {latency_sensitive("web", 2)};
  EXPECT_THAT(bonds(decide(host, settings)), IsEmpty());
}

// The host of `host` with its second NUMA node called `second`, and with these nodes besides.
void renumber(model::Snapshot& host, int second, std::vector<model::NumaNode> nodes) {
  std::vector<model::Cpu> cpus = host.topology.cpus();
  for (model::Cpu& cpu : cpus) cpu.numa = cpu.numa == 0 ? 0 : second;
  host.topology = model::Topology::make(std::move(cpus), {}, {}, std::move(nodes)).value();
}

TEST(Placement, MemoryIsBoundToNodesByTheKernelsNumbersAndNeverToOneWithoutVcpus) {
  PolicySettings settings;
  settings.placement.memory_nodes = true;
  model::Snapshot host = gpu_host("a", {});
  host.workloads = {pinned(latency_sensitive("db1", 4), "0-3"), pinned(latency_sensitive("db2", 4), "4-7")};
  renumber(host, 8, {});
  EXPECT_THAT(bonds(decide(host, settings)), ElementsAre("db1=0", "db2=8"));
  // An expander (CXL) or HBM.
  const std::uint64_t size = 1ULL << 36U;
  renumber(host, 2,
           {{.number = 0, .memory_bytes = size},
            {.number = 1, .memory_bytes = size},
            {.number = 2, .memory_bytes = size}});
  EXPECT_THAT(bonds(decide(host, settings)), ElementsAre("db1=0", "db2=2"));
}

TEST(Placement, MemoryIsNotBoundToANodeWithoutMemory) {
  PolicySettings settings;
  settings.placement.memory_nodes = true;
  model::Snapshot host = gpu_host("a", {});
  host.workloads = {pinned(latency_sensitive("db1", 4), "0-3"), pinned(latency_sensitive("db2", 4), "4-7")};
  renumber(host, 1, {{.number = 0, .memory_bytes = 1ULL << 36U}, {.number = 1, .memory_bytes = 0}});
  // All memory is on node 0, so that a bond would change nothing.
  EXPECT_THAT(bonds(decide(host, settings)), IsEmpty());
  // A bond of before goes back, with the reason.
  host.workloads[1].memory_nodes = testing::cpus("1");
  const model::Plan plan = decide(host, settings);
  EXPECT_THAT(bonds(plan), ElementsAre("db2="));
  EXPECT_THAT(plan.actions.back().reason, HasSubstr("its vCPUs 4-7 are on NUMA node 1 without memory"));
}

// Restates the page: the nodes of the pin that have memory, unless these are all that a pin could have.
RC_GTEST_PROP(Placement, BondsAreTheNodesOfThePinThatHaveMemory, ()) {
  PolicySettings settings;
  settings.placement.memory_nodes = true;
  model::Snapshot host = gpu_host("a", {});
  host.workloads = {pinned(latency_sensitive("db1", 4), "0-3"), pinned(latency_sensitive("db2", 4), "4-7")};
  const int second = *rc::gen::element(1, 2, 8, 45);
  std::vector<model::NumaNode> nodes;
  std::set<int> with_memory;
  for (const int number : {0, 1, 2, 8, 45, 252}) {
    const bool memory = *rc::gen::arbitrary<bool>();
    nodes.push_back({.number = number, .memory_bytes = memory ? 1ULL << 36U : 0});
    if (memory) with_memory.insert(number);
  }
  renumber(host, second, nodes);
  std::vector<std::string> expected;
  if (with_memory.count(0) > 0 && with_memory.count(second) > 0)
    expected = {"db1=0", "db2=" + std::to_string(second)};
  RC_ASSERT(bonds(decide(host, settings)) == expected);
}

TEST(Placement, GpuWorkIsPinnedNearItsGpusWhileVcpusAreFreeThere) {
  model::Snapshot host = gpu_host("a", {gpu("g0", 1), gpu("g1", 0)});
  host.workloads = {using_gpus(latency_sensitive("infer", 4), {"g0"})};
  const auto pin = [&host] { return decide(host, {}).findings.interference->instances.at("infer").cpus; };
  EXPECT_TRUE(pin().is_subset_of(testing::cpus("4-7,12-15"))) << pin().to_string();
  host.workloads[0].gpus.clear();
  EXPECT_TRUE(pin().is_subset_of(testing::cpus("0-3,8-11"))) << pin().to_string();
  // The holder of a GPU need not list it.
  auto gpus = host.topology.gpus();
  gpus[0].holder = "infer";
  host.topology = model::Topology::make(host.topology.cpus(), gpus).value();
  EXPECT_TRUE(pin().is_subset_of(testing::cpus("4-7,12-15"))) << pin().to_string();
  host.workloads.push_back(pinned(latency_sensitive("web", 5), "4-7,12"));
  EXPECT_TRUE(pin().is_subset_of(testing::cpus("0-3,8-11"))) << pin().to_string();
}

TEST(Placement, BreaksTiesByHostThenByNumaNode) {
  EXPECT_THAT(names(rank(request(1), {gpu_host("b", {}), gpu_host("a", {})})),
              ElementsAre("a/0", "a/1", "b/0", "b/1"));
}

TEST(Placement, LeavesCoresNearGpusToGpuWorkWhileOthersAreFree) {
  model::Snapshot host = gpu_host("a", {gpu("g0", 0)});
  host.workloads = {pinned(latency_sensitive("web", 4), "4-7")};  // NUMA node 1 has the lesser part free
  EXPECT_THAT(names(rank(request(2), {host})), ElementsAre("a/1", "a/0"));
  PolicySettings settings;
  settings.placement.avoid_gpu_nodes = false;
  EXPECT_THAT(names(rank(request(2), {host}, settings)), ElementsAre("a/0", "a/1"));
}

TEST(Placement, CpuWorkThatFitsNowhereElseGoesWhereFewestGpusAreFree) {
  const model::Snapshot a = gpu_host("a", {gpu("g0", 0), gpu("g1", 0), gpu("g2", 1), gpu("g3", 1)});
  model::Snapshot b = gpu_host("b", {gpu("g0", 0), gpu("g1", 0), gpu("g2", 1), gpu("g3", 1)});
  b.workloads = {using_gpus(best_effort("train"), {"g2"})};
  EXPECT_THAT(names(rank(request(2), {a, b})), ElementsAre("b/1", "a/0", "a/1", "b/0"));
}

TEST(Placement, GpuWorkGoesWhereFewestGpusAreLeftThenLeastOfTheirMemoryThenLeastCpu) {
  const auto pair = [](const std::string& name, std::uint64_t gib) {
    return gpu_host(name, {gpu("g0", 0, gib), gpu("g1", 0, gib)});
  };
  EXPECT_THAT(names(rank(request(1, 1), {pair("a", 80), gpu_host("b", {gpu("g0", 0)})})),
              ElementsAre("b/0", "a/0"));
  model::PendingWorkload small = request(1, 1);
  small.gpu_memory_bytes = 20 * kGiB;
  const auto by_memory = rank(small, {pair("a", 80), pair("b", 24)});
  EXPECT_THAT(names(by_memory), ElementsAre("b/0", "a/0"));
  EXPECT_EQ(by_memory.fitting[0].gpu_memory_left_bytes, 4 * kGiB);
  EXPECT_EQ(by_memory.fitting[0].gpus_left, 1);
  model::Snapshot busy = pair("b", 80);
  busy.workloads = {pinned(latency_sensitive("web", 2), "0-1")};
  EXPECT_THAT(names(rank(request(1, 1), {pair("a", 80), busy})), ElementsAre("b/0", "a/0"));
}

TEST(Placement, TakesTheSmallestGpusThatDo) {
  model::PendingWorkload wanted = request(1, 2);
  wanted.gpu_memory_bytes = 20 * kGiB;
  const auto ranking =
      rank(wanted, {gpu_host("a", {gpu("g0", 0, 80), gpu("g1", 0, 24), gpu("g2", 0, 16), gpu("g3", 0, 40)})});
  ASSERT_THAT(names(ranking), ElementsAre("a/0"));
  EXPECT_THAT(ranking.fitting[0].gpus, ElementsAre("g1", "g3"));
}

TEST(Placement, SaysOfEachGpuWhatIsWrongWithIt) {
  std::vector<model::Gpu> gpus{gpu("g0", 0), gpu("g1", 0), gpu("g2", 0), gpu("g3", 0), gpu("g4", 0, 10)};
  gpus[0].healthy = false;
  gpus[1].model = "NVIDIA A10";
  gpus[2].holder = "train";
  model::Snapshot host = gpu_host("a", gpus);
  host.workloads = {using_gpus(best_effort("infer"), {"g3"}), best_effort("train")};
  model::PendingWorkload wanted = request(1, 1);
  wanted.gpu_model = "*H100*";
  wanted.gpu_memory_bytes = 40 * kGiB;
  const auto ranking = rank(wanted, {host});
  EXPECT_THAT(ranking.fitting, IsEmpty());
  EXPECT_EQ(why_not(ranking, "a/0"),
            "asks 1 GPU; suitable here: 0 of 5, 1 unhealthy, 1 of another model, 1 held, 1 shared by others, "
            "1 with less than 40 GiB free");
  EXPECT_EQ(why_not(ranking, "a/1"), "asks 1 GPU; this NUMA node has none");
}

TEST(Placement, AGpuOfUnknownMemoryDoesForWhoAsksForNone) {
  model::Gpu unknown = gpu("g0", 0);
  unknown.memory_used_bytes.reset();
  EXPECT_THAT(names(rank(request(1, 1), {gpu_host("a", {unknown})})), ElementsAre("a/0"));
  model::PendingWorkload wanted = request(1, 1);
  wanted.gpu_memory_bytes = 1;
  const auto ranking = rank(wanted, {gpu_host("a", {unknown})});
  EXPECT_THAT(ranking.fitting, IsEmpty());
  EXPECT_THAT(why_not(ranking, "a/0"), HasSubstr("1 with an unknown amount of free memory"));
}

TEST(Placement, ProcessesOfNoWorkloadShareTheirGpu) {
  model::Gpu busy = gpu("g0", 0);
  busy.other_processes = 2;
  const auto ranking = rank(request(1, 1), {gpu_host("a", {busy})});
  EXPECT_THAT(ranking.fitting, IsEmpty());
  EXPECT_THAT(why_not(ranking, "a/0"), HasSubstr("1 shared by others"));
  model::PendingWorkload sharing = request(1, 1);
  sharing.gpu_exclusive = false;
  EXPECT_THAT(names(rank(sharing, {gpu_host("a", {busy})})), ElementsAre("a/0"));
  busy.other_processes = 0;
  EXPECT_THAT(names(rank(request(1, 1), {gpu_host("a", {busy})})), ElementsAre("a/0"));
}

TEST(Placement, VcpusPromisedToOneWithoutAPlaceAreNobodyElses) {
  model::Snapshot host = gpu_host("a", {});
  host.pending = {request(9)};  // more than a node of eight can hold
  host.pending.front().id = "awaited";
  // Of sixteen nine are promised, and one stays with best-effort work.
  EXPECT_THAT(names(rank(request(6), {host})), ElementsAre("a/0", "a/1"));
  EXPECT_THAT(rank(request(7), {host}).fitting, IsEmpty());
}

TEST(Placement, GpusPromisedToOneWithoutAPlaceAreNobodyElses) {
  model::Snapshot host = gpu_host("a", {gpu("g0", 0), gpu("g1", 0)});
  host.pending = {request(1, 1, 100)};  // more memory than the host has
  host.pending.front().id = "awaited";
  host.pending.front().told_gpus = {"g0"};
  const auto ranking = rank(request(1, 1), {host});
  ASSERT_EQ(ranking.fitting.size(), 1U);
  EXPECT_THAT(ranking.fitting.front().gpus, ElementsAre("g1"));
  EXPECT_THAT(why_not(rank(request(1, 2), {host}), "a/0"), HasSubstr("1 held"));
}

TEST(Placement, MemoryOfASharedGpuIsPromisedToo) {
  model::Snapshot host = gpu_host("a", {gpu("g0", 0)});
  model::PendingWorkload sharing = request(1, 1, 100);
  sharing.id = "awaited";
  sharing.gpu_exclusive = false;
  sharing.gpu_memory_bytes = 40 * kGiB;
  sharing.told_gpus = {"g0"};
  host.pending = {sharing};
  model::PendingWorkload another = request(1, 1);
  another.gpu_exclusive = false;
  another.gpu_memory_bytes = 40 * kGiB;
  EXPECT_THAT(names(rank(another, {host})), ElementsAre("a/0"));
  another.gpu_memory_bytes = 41 * kGiB;
  EXPECT_THAT(why_not(rank(another, {host}), "a/0"), HasSubstr("1 with less than"));
  EXPECT_THAT(why_not(rank(request(1, 1), {host}), "a/0"), HasSubstr("1 shared by others"));
}

TEST(Placement, WhoSharesGpusGoesToThoseThatAreSharedAlready) {
  model::Snapshot host = gpu_host("a", {gpu("g0", 0), gpu("g1", 0)});
  host.workloads = {using_gpus(best_effort("infer"), {"g1"})};
  model::PendingWorkload wanted = request(1, 1);
  wanted.gpu_exclusive = false;
  const auto ranking = rank(wanted, {host});
  ASSERT_THAT(names(ranking), ElementsAre("a/0"));
  EXPECT_THAT(ranking.fitting[0].gpus, ElementsAre("g1"));
  EXPECT_EQ(ranking.fitting[0].gpus_left, 1);
}

TEST(Placement, AGpuOfUnknownPlaceIsInTheFirstNode) {
  std::vector<model::Gpu> gpus{gpu("g0", 0)};
  gpus[0].numa.reset();
  EXPECT_THAT(names(rank(request(1, 1), {gpu_host("a", gpus)})), ElementsAre("a/0"));
}

TEST(Placement, CountsTheVcpusThatThePlanGivesToWhoeverRunsThere) {
  model::Snapshot host = gpu_host("a", {});
  host.workloads = {latency_sensitive("db", 6)};  // not pinned yet: a host that observes
  const auto ranking = rank(request(4), {host});
  EXPECT_THAT(names(ranking), ElementsAre("a/1"));
  EXPECT_EQ(why_not(ranking, "a/0"), "asks 4 vCPUs; 2 of 8 are free");
}

TEST(Placement, KeepsWhatMustStayWithBestEffortWork) {
  model::Snapshot host = gpu_host("a", {});
  host.workloads = {pinned(latency_sensitive("db", 8), "0-3,8-11")};
  PolicySettings settings;
  settings.interference.be_min_cpus = 3;
  EXPECT_THAT(names(rank(request(5), {host}, settings)), ElementsAre("a/1"));
  EXPECT_EQ(why_not(rank(request(6), {host}, settings), "a/1"), "asks 6 vCPUs; 5 of 8 are free");
  settings.interference.reserved_cpus = testing::cpus("4-7");
  settings.interference.reserved = Reserved::shared;
  EXPECT_EQ(why_not(rank(request(5), {host}, settings), "a/1"), "asks 5 vCPUs; 4 of 8 are free");
  settings.interference.reserved = Reserved::strict;
  EXPECT_EQ(why_not(rank(request(5), {host}, settings), "a/1"),
            "asks 5 vCPUs; 1 of 4 are free; vCPUs 4-7 are reserved");
}

TEST(Placement, WantsOneDomainInsideTheNode) {
  model::Snapshot host =
      testing::snapshot_of(testing::host({.sockets = 1, .llcs_per_socket = 2, .cores_per_llc = 4}));
  host.host = "a";
  host.workloads = {pinned(latency_sensitive("x", 5), "0-3,8"), pinned(latency_sensitive("y", 5), "4-7,12")};
  const auto ranking = rank(request(4), {host});  // 6 are free, 3 in each cache
  EXPECT_THAT(ranking.fitting, IsEmpty());
  EXPECT_THAT(why_not(ranking, "a/0"), HasSubstr("asks 4 vCPUs in one domain"));
}

TEST(Placement, BestEffortWorkCountsWithWhatItHoldsAndSharesWhatNobodyOwns) {
  model::Snapshot host = gpu_host("a", {});
  host.workloads = {best_effort("batch", 1), pinned(latency_sensitive("web", 4), "0-3")};
  host.workloads[0].cpu_quota_cores = 6;
  model::PendingWorkload wanted = request(3);
  wanted.workload_class = model::WorkloadClass::best_effort;
  // 12 vCPUs are shared, so that the 6 cores of batch count 2 on node 0 and 4 on node 1.
  const auto ranking = rank(wanted, {host});
  EXPECT_THAT(names(ranking), ElementsAre("a/1"));
  EXPECT_EQ(ranking.fitting[0].cpus.to_string(), "4-7,12-15");
  EXPECT_DOUBLE_EQ(ranking.fitting[0].cpu_left_cores, 1);
  EXPECT_EQ(why_not(ranking, "a/0"), "asks 3 vCPUs; 2 of 4 are free");
}

TEST(Placement, OversoldCpuIsForBestEffortWorkOnly) {
  model::Snapshot host = gpu_host("a", {});
  host.advertised.cpu = {.factor = 1.5, .state = model::SchedulingState::schedule};
  model::PendingWorkload wanted = request(10);
  EXPECT_THAT(names(rank(wanted, {host})), IsEmpty());
  wanted.workload_class = model::WorkloadClass::best_effort;
  EXPECT_THAT(names(rank(wanted, {host})), ElementsAre("a/0", "a/1"));
}

TEST(Placement, OnlyWhatNobodyOwnsIsOversold) {
  model::Snapshot host = gpu_host("a", {});
  host.advertised.cpu = {.factor = 1.5, .state = model::SchedulingState::schedule};
  host.workloads = {pinned(latency_sensitive("web", 8), "0-3,8-11"),
                    pinned(latency_sensitive("db", 7), "4-7,12-14")};
  model::PendingWorkload wanted = request(2);
  wanted.workload_class = model::WorkloadClass::best_effort;
  const auto ranking = rank(wanted, {host});
  EXPECT_THAT(names(ranking), IsEmpty());
  EXPECT_EQ(why_not(ranking, "a/0"), "asks 2 vCPUs; 0 of 0 are free");
  EXPECT_EQ(why_not(ranking, "a/1"), "asks 2 vCPUs; 1.5 of 1.5 are free");
  wanted.vcpus = 1;
  EXPECT_THAT(names(rank(wanted, {host})), ElementsAre("a/1"));
}

TEST(Placement, BestEffortWorkKeepsToTheRestWherePendingWorkIsToOwn) {
  model::Snapshot host = gpu_host("a", {});
  host.workloads = {best_effort("batch")};
  host.workloads[0].cpu_quota_cores = 8;
  host.pending = {request(8)};
  model::PendingWorkload wanted = request(1);
  wanted.workload_class = model::WorkloadClass::best_effort;
  // The 8 cores of batch were 4 on each node, and are all on node 1 then.
  const auto ranking = rank(wanted, {host});
  EXPECT_THAT(names(ranking), IsEmpty());
  EXPECT_EQ(why_not(ranking, "a/0"), "asks 1 vCPU; 0 of 0 are free");
  EXPECT_EQ(why_not(ranking, "a/1"), "asks 1 vCPU; 0 of 8 are free");
}

TEST(Placement, MemoryThatMayNotBeUsedIsNotThere) {
  const model::Snapshot host = gpu_host("a", {});
  PolicySettings settings;
  settings.oversell.memory_cap_bytes = 40 * kGiB;
  EXPECT_EQ(why_not(rank(request(1, 0, 50), {host}, settings), "a/0"),
            "asks 50 GiB of memory; 40 GiB of 40 GiB are free on the host");
  model::Snapshot used = host;
  used.memory.available_bytes = 34 * kGiB;  // 30 of the 40 are in use
  EXPECT_EQ(why_not(rank(request(1, 0, 11), {used}, settings), "a/0"),
            "asks 11 GiB of memory; 10 GiB of 40 GiB are free on the host");
  used.memory.available_bytes = 4 * kGiB;
  EXPECT_EQ(why_not(rank(request(1, 0, 1), {used}, settings), "a/0"),
            "asks 1 GiB of memory; 0 bytes of 40 GiB are free on the host");
}

TEST(Placement, AnySumOfClaimsIsTooMuch) {
  model::Snapshot host = gpu_host("a", {});
  for (int i = 0; i < 2048; ++i) {
    host.workloads.push_back(best_effort(fmt::format("w{:04}", i)));
    host.workloads.back().memory_request_bytes = model::kMaxBytes;  // 2^64 in all
  }
  EXPECT_EQ(why_not(rank(request(1, 0, 1), {host}), "a/0"),
            "asks 1 GiB of memory; 0 bytes of 64 GiB are free on the host");
}

TEST(Placement, MemoryIsWhatIsNeitherClaimedNorInUse) {
  model::Snapshot host = gpu_host("a", {});
  host.workloads = {best_effort("batch", 1)};
  host.workloads[0].memory_request_bytes = 40 * kGiB;
  const auto ranking = rank(request(1, 0, 30), {host});
  EXPECT_EQ(why_not(ranking, "a/0"), "asks 30 GiB of memory; 24 GiB of 64 GiB are free on the host");
  EXPECT_THAT(names(rank(request(1, 0, 24), {host})), ElementsAre("a/0", "a/1"));
  host.advertised.memory = {.factor = 1.25, .state = model::SchedulingState::schedule};
  EXPECT_THAT(names(rank(request(1, 0, 30), {host})), ElementsAre("a/0", "a/1"));
  host.memory.available_bytes = 8 * kGiB;
  EXPECT_THAT(names(rank(request(1, 0, 24), {host})), IsEmpty());
}

TEST(Placement, AHostThatTakesNoWorkIsRejected) {
  model::Snapshot host = gpu_host("a", {});
  host.advertised.memory = {.factor = 1, .state = model::SchedulingState::no_schedule};
  const auto ranking = rank(request(1), {host, gpu_host("b", {})});
  EXPECT_THAT(names(ranking), ElementsAre("b/0", "b/1"));
  EXPECT_EQ(why_not(ranking, "a/1"), "the host's memory is in state no-schedule");
}

TEST(Placement, WhatIsPendingComesFirst) {
  model::Snapshot host = gpu_host("a", {gpu("g0", 0)});
  host.pending = {request(2, 1)};
  const auto ranking = rank(request(2, 1), {host});
  EXPECT_THAT(ranking.fitting, IsEmpty());
  EXPECT_EQ(why_not(ranking, "a/0"), "asks 1 GPU; suitable here: 0 of 1, 1 held");
}

TEST(Placement, ThePlanGivesPendingWorkVcpusNearItsGpus) {
  model::Snapshot host = gpu_host("a", {gpu("g0", 1)});
  host.pending = {request(2, 1)};
  const model::Plan plan = decide(host, {});
  const model::BinRanking& ranking = plan.findings.placement->pending.at("new");
  ASSERT_THAT(names(ranking), ElementsAre("a/1"));
  EXPECT_TRUE(ranking.fitting[0].cpus.is_subset_of(testing::cpus("4-7,12-15")));
  EXPECT_EQ(plan.findings.interference->instances.at("new").cpus, ranking.fitting[0].cpus);
}

TEST(Placement, PendingWorkThatFitsNowhereTakesNothing) {
  model::Snapshot host = gpu_host("a", {gpu("g0", 1)});
  host.pending = {request(2, 2), request(2, 1)};
  host.pending[1].id = "other";
  const auto findings = propose_places(host, {}).findings.pending;
  EXPECT_THAT(names(findings.at("new")), IsEmpty());
  EXPECT_THAT(names(findings.at("other")), ElementsAre("a/1"));
}

TEST(Placement, ThePlanMakesNoRoomForPendingWorkThatFitsNowhere) {
  model::Snapshot host = gpu_host("a", {});
  host.topology = testing::host({.cores_per_llc = 8, .threads_per_core = 1});
  host.workloads = {best_effort("batch")};
  host.pending = {request(6, 1), request(6)};
  host.pending[1].id = "other";
  const model::Plan plan = decide(host, {});
  const model::InterferenceFindings& found = *plan.findings.interference;
  ASSERT_TRUE(found.instances.contains("other"));
  EXPECT_FALSE(found.instances.contains("new"));
  ASSERT_EQ(found.unplaceable.size(), 1U);
  EXPECT_EQ(found.unplaceable[0].workload, "new");
  EXPECT_EQ(found.unplaceable[0].reason, "fits in no NUMA node: node 0: asks 1 GPU; this NUMA node has none");
  EXPECT_THAT(testing::pins(plan), ElementsAre("batch=6-7"));
  host.pending.pop_back();
  EXPECT_THAT(testing::pins(decide(host, {})), IsEmpty());
}

TEST(Placement, PendingWorkWithoutVcpusSaysSo) {
  model::Snapshot host = gpu_host("a", {});
  host.pending = {request(1)};
  host.pending[0].vcpus.reset();
  EXPECT_EQ(why_not(propose_places(host, {}).findings.pending.at("new"), "a/0"),
            "declares no vcpus, which a pin needs; give it vcpus, or a CPU quota");
}

}  // namespace berth::policies
