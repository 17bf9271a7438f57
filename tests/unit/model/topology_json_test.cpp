// SPDX-License-Identifier: Apache-2.0
#include "model/json.h"
#include "tests/unit/model/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::model {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string with_topology(const std::string& topology) {
  return R"({"schema":"berth.snapshot/1","topology":)" + topology + R"(,"workloads":[]})";
}

Result<ParsedSnapshot> parsed(const std::string& topology, const TopologyResolver& resolve = {}) {
  return parse_snapshot(with_topology(topology), resolve);
}

Topology two_cpus() {
  Cpu second;
  second.cpu = second.core = 1;
  return *Topology::make({Cpu{}, second});
}

TEST(TopologyJson, ACpuAloneIsACoreOfItsOwn) {
  const auto snapshot = parsed(R"({"cpus":[{"cpu":3},{"cpu":1}]})");
  ASSERT_TRUE(snapshot);
  const Cpu* cpu = snapshot->snapshot.topology.find(3);
  ASSERT_NE(cpu, nullptr);
  Cpu expected;
  expected.cpu = expected.core = 3;
  EXPECT_EQ(*cpu, expected);
  EXPECT_FALSE(snapshot->snapshot.topology.has_llc());
}

TEST(TopologyJson, ReadsOfflineForbiddenAndEfficientCpus) {
  const auto snapshot = parsed(
      R"({"cpus":[{"cpu":0},{"cpu":1,"online":false},{"cpu":2,"allowed":false,"efficiency":0,"llc":null}]})");
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->snapshot.topology.usable(), CpuSet{0});
  EXPECT_EQ(snapshot->snapshot.topology.find(2)->efficiency, 0);
}

TEST(TopologyJson, NamesTheCpuThatCannotBe) {
  EXPECT_EQ(error_of(with_topology(R"({"cpus":[{"cpu":0},{"cpu":1},{"cpu":0}]})")),
            "$.topology.cpus[2]: vCPU 0 is already at cpus[0]");
  EXPECT_EQ(error_of(with_topology(R"({"cpus":[{"cpu":8192}]})")),
            "$.topology.cpus[0].cpu: 8192 is not between 0 and 8191");
  EXPECT_EQ(error_of(with_topology(R"({"cpus":[{"core":0}]})")), "$.topology.cpus[0].cpu: missing");
  EXPECT_EQ(error_of(with_topology(R"({"cpus":[{"cpu":0,"socket":-1}]})")),
            "$.topology.cpus[0].socket: -1 is not between 0 and 8191");
}

TEST(TopologyJson, NoCpus) {
  EXPECT_EQ(error_of(with_topology(R"({"cpus":[]})")), "$.topology.cpus: no vCPU at all");
  EXPECT_EQ(error_of(with_topology("{}")),
            "$.topology.cpus: missing, and neither hwloc_synthetic nor hwloc_xml is given");
  EXPECT_EQ(error_of(with_topology(R"("pack:2")")), "$.topology: expected an object, found a string");
}

TEST(TopologyJson, TwoWaysToSayItAtOnce) {
  EXPECT_THAT(error_of(with_topology(R"({"cpus":[{"cpu":0}],"hwloc_synthetic":"pu:2"})")),
              HasSubstr("not several"));
}

TEST(TopologyJson, GpusThatCannotBe) {
  EXPECT_THAT(error_of(with_topology(R"({"cpus":[{"cpu":0}],"gpus":[{"id":"g"},{"id":"g"}]})")),
              StartsWith("$.topology.gpus[1]: GPU g is already"));
  EXPECT_THAT(error_of(with_topology(R"({"cpus":[{"cpu":0}],"gpus":[{"id":"g","utilisation":2}]})")),
              StartsWith("$.topology.gpus[0].utilisation: 2 is not between"));
  EXPECT_THAT(error_of(with_topology(
                  R"({"cpus":[{"cpu":0}],"gpus":[{"id":"g","memory_bytes":0,"memory_used_bytes":1}]})")),
              StartsWith("$.topology.gpus[0]: 1 bytes used of 0"));
}

TEST(TopologyJson, DistancesOfNumaNodesReadBack) {
  const auto snapshot = parsed(
      R"({"cpus":[{"cpu":0},{"cpu":1,"numa":3}],"numa_distances":{"nodes":"0,3","values":[[10,21],[20,10]]}})");
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  const Topology& topology = snapshot->snapshot.topology;
  EXPECT_EQ(topology.numa_distances().between(0, 3), 21);
  EXPECT_EQ(topology.numa_distances().between(3, 0), 20);
  EXPECT_EQ(topology.numa_distances().between(0, 1), std::nullopt);
  EXPECT_THAT(to_json(topology), HasSubstr(R"("numa_distances":{"nodes":"0,3","values":[[10,21],[20,10]]})"));
  EXPECT_EQ(parse_topology(to_json(topology)), topology);
  EXPECT_THAT(to_json(two_cpus()), ::testing::Not(HasSubstr("numa_distances")));
}

TEST(TopologyJson, DistancesThatCannotBe) {
  const auto error = [](const std::string& distances) {
    return error_of(with_topology(R"({"cpus":[{"cpu":0}],"numa_distances":)" + distances + "}"));
  };
  EXPECT_EQ(error(R"({"nodes":"0-1"})"), "$.topology.numa_distances.values: missing");
  EXPECT_EQ(error(R"({"nodes":"0-1","values":[[10,20]]})"),
            "$.topology.numa_distances.values: 1 rows for 2 NUMA nodes");
  EXPECT_EQ(error(R"({"nodes":"0-1","values":[[10,20],[10]]})"),
            "$.topology.numa_distances.values[1]: 1 distances for 2 NUMA nodes");
  EXPECT_EQ(error(R"({"nodes":"0","values":[[10,20]]})"),
            "$.topology.numa_distances.values[0]: 2 distances for 1 NUMA nodes");
  EXPECT_EQ(error(R"({"nodes":"0-1","values":[[10,0],[20,10]]})"),
            "$.topology.numa_distances.values[0][1]: 0 is not between 1 and 1000000");
  EXPECT_EQ(error(R"({"nodes":"0-64","values":[]})"),
            "$.topology.numa_distances.nodes: 65 NUMA nodes; at most 64 can have distances");
  EXPECT_EQ(error(R"({"nodes":"","values":[]})"), "accepted");
}

TEST(TopologyJson, NodesThatDifferReadBack) {
  const auto snapshot =
      parsed(R"({"cpus":[{"cpu":0},{"cpu":1,"numa":8}],"numa_nodes":[{"node":0},{"node":8,"memory_bytes":0},)"
             R"({"node":252,"memory_bytes":4096}]})");
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  const Topology& topology = snapshot->snapshot.topology;
  EXPECT_EQ(topology.numa_nodes(), (std::vector<NumaNode>{{.number = 0, .memory_bytes = {}},
                                                          {.number = 8, .memory_bytes = 0},
                                                          {.number = 252, .memory_bytes = 4096}}));
  EXPECT_EQ(topology.nodes_to_bind(), CpuSet{0}) << "of nodes with vCPUs, those with memory";
  EXPECT_THAT(to_json(topology),
              HasSubstr(R"("numa_nodes":[{"node":0,"memory_bytes":null},)"
                        R"({"node":8,"memory_bytes":0},{"node":252,"memory_bytes":4096}])"));
  EXPECT_EQ(parse_topology(to_json(topology)), topology);
  EXPECT_THAT(to_json(two_cpus()), ::testing::Not(HasSubstr("numa_nodes")));
}

TEST(TopologyJson, NodesThatCannotBe) {
  const auto error = [](const std::string& nodes) {
    return error_of(with_topology(R"({"cpus":[{"cpu":0}],"numa_nodes":)" + nodes + "}"));
  };
  EXPECT_EQ(error(R"([{"memory_bytes":1}])"), "$.topology.numa_nodes[0].node: missing");
  EXPECT_EQ(error(R"([{"node":8192}])"), "$.topology.numa_nodes[0].node: 8192 is not between 0 and 8191");
  EXPECT_EQ(error(R"([{"node":1},{"node":1}])"), "$.topology.numa_nodes: NUMA node 1 does not come after 1");
  std::string many;
  for (int node = 0; node <= 1024; ++node)
    many += (node == 0 ? "" : ",") + std::string(R"({"node":)") + std::to_string(node) + "}";
  EXPECT_EQ(error("[" + many + "]"), "$.topology.numa_nodes: 1025 NUMA nodes; at most 1024 can be listed");
}

// The distances of a reference count, unless the document gives others.
TEST(TopologyJson, DistancesComeWithAReference) {
  const auto resolve = [](const TopologyReference&) {
    return Topology::make({Cpu{}}, {}, {.nodes = {0, 1}, .values = {10, 20, 20, 10}});
  };
  const auto from_file = parsed(R"({"hwloc_xml":"a.xml"})", resolve);
  ASSERT_TRUE(from_file);
  EXPECT_EQ(from_file->snapshot.topology.numa_distances().between(0, 1), 20);
  const auto given =
      parsed(R"({"hwloc_xml":"a.xml","numa_distances":{"nodes":"0-1","values":[[10,31],[31,10]]}})", resolve);
  ASSERT_TRUE(given);
  EXPECT_EQ(given->snapshot.topology.numa_distances().between(0, 1), 31);
}

TEST(TopologyJson, OfAGpuWhatIsNotKnownIsNull) {
  const auto snapshot =
      parsed(R"({"cpus":[{"cpu":0}],"gpus":[{"id":"g","memory_bytes":null,"utilisation":null}]})");
  ASSERT_TRUE(snapshot);
  const auto& gpu = snapshot->snapshot.topology.gpus().front();
  EXPECT_EQ(gpu.memory_bytes, std::nullopt);
  EXPECT_EQ(gpu.memory_used_bytes, std::nullopt);
  EXPECT_EQ(gpu.utilisation, std::nullopt);
  EXPECT_THAT(to_json(snapshot->snapshot.topology),
              HasSubstr(R"("numa":null,"memory_bytes":null,"memory_used_bytes":null,"utilisation":null,)"
                        R"("healthy":true,"holder":null}])"));
}

TEST(TopologyJson, AGpuWithASizeAndNoUseIsAllFree) {
  const auto snapshot = parsed(R"({"cpus":[{"cpu":0}],"gpus":[{"id":"g","memory_bytes":8}]})");
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->snapshot.topology.gpus().front().memory_used_bytes, 0U);
}

TEST(TopologyJson, OfAGpuItIsSaidWhatIsWrongWithItAndHowManyOthersUseIt) {
  const auto snapshot = parsed(
      R"({"cpus":[{"cpu":0}],"gpus":[{"id":"g","healthy":false,"problem":"it is lost","other_processes":2}]})");
  ASSERT_TRUE(snapshot);
  const auto& gpu = snapshot->snapshot.topology.gpus().front();
  EXPECT_EQ(gpu.problem, "it is lost");
  EXPECT_EQ(gpu.other_processes, 2);
  EXPECT_THAT(error_of(with_topology(R"({"cpus":[{"cpu":0}],"gpus":[{"id":"g","other_processes":-1}]})")),
              StartsWith("$.topology.gpus[0].other_processes"));
}

TEST(TopologyJson, LinksOfGpusReadBack) {
  const auto snapshot = parsed(
      R"({"cpus":[{"cpu":0}],"gpus":[{"id":"a","links":{"c":"SYS","b":"NV"}},{"id":"b","links":{"a":"NV"}},{"id":"c"}]})");
  ASSERT_TRUE(snapshot) << snapshot.error().message();
  const Topology& topology = snapshot->snapshot.topology;
  const auto& gpus = topology.gpus();
  EXPECT_EQ(gpus[0].links,
            (std::vector<GpuPeer>{{.id = "b", .link = GpuLink::nv}, {.id = "c", .link = GpuLink::sys}}));
  EXPECT_EQ(link_between(gpus[1], gpus[0]), GpuLink::nv);
  // One of the two is enough.
  EXPECT_EQ(link_between(gpus[2], gpus[0]), GpuLink::sys);
  EXPECT_EQ(link_between(gpus[2], gpus[1]), std::nullopt);
  EXPECT_THAT(to_json(topology), HasSubstr(R"("links":{"b":"NV","c":"SYS"}})"));
  EXPECT_THAT(to_json(topology), HasSubstr(R"({"id":"c",)"));
  EXPECT_EQ(parse_topology(to_json(topology)), topology);
}

TEST(TopologyJson, LinksThatCannotBe) {
  const auto error = [](const std::string& gpus) {
    return error_of(with_topology(R"({"cpus":[{"cpu":0}],"gpus":[)" + gpus + "]}"));
  };
  EXPECT_EQ(error(R"({"id":"a","links":{"b":"NV2"}},{"id":"b"})"),
            R"($.topology.gpus[0].links.b: expected one of NV, PIX, PXB, PHB, NODE, SYS, found "NV2")");
  EXPECT_EQ(error(R"({"id":"a","links":{"b":"NV"}})"),
            "$.topology.gpus[0]: it has a link to GPU b, which is not in the list");
  EXPECT_EQ(error(R"({"id":"a","links":{"a":"NV"}})"), "$.topology.gpus[0]: GPU a has a link to itself");
  EXPECT_EQ(error(R"({"id":"a","links":{"b":"NV"}},{"id":"b","links":{"a":"PIX"}})"),
            "$.topology.gpus[0]: its link to GPU b is NV, but that one's link back is PIX");
  EXPECT_EQ(error(R"({"id":"a","links":["b"]})"),
            "$.topology.gpus[0].links: expected an object, found an array");
  EXPECT_EQ(error(R"({"id":"a","links":{"":"NV"}})"),
            "$.topology.gpus[0].links: a link to a GPU with an id of 0 bytes; 1 to 4096 are accepted");
  EXPECT_EQ(error(R"({"id":"a","links":{")" + std::string(4097, 'x') + R"(":"NV"}})"),
            "$.topology.gpus[0].links: a link to a GPU with an id of 4097 bytes; 1 to 4096 are accepted");
  // Control characters come out of no message.
  EXPECT_EQ(error(R"({"id":"a","links":{"\u001b[2J":"NV"}})"),
            "$.topology.gpus[0]: it has a link to GPU ?[2J, which is not in the list");
}

TEST(TopologyJson, NoMoreThan64GpusHaveLinks) {
  const auto document = [](int gpus) {
    std::string list;
    for (int gpu = 0; gpu < gpus; ++gpu) {
      list += (gpu == 0 ? "" : ",") + (R"({"id":"g)" + std::to_string(gpu)) + R"(")";
      if (gpu > 0) list += R"(,"links":{"g)" + std::to_string(gpu - 1) + R"(":"PIX"})";
      list += "}";
    }
    return error_of(with_topology(R"({"cpus":[{"cpu":0}],"gpus":[)" + list + "]}"));
  };
  EXPECT_EQ(document(64), "accepted");
  EXPECT_EQ(document(65), "$.topology.gpus: 65 of them have links; at most 64 can have any");
  std::string many;
  for (int gpu = 0; gpu < 65; ++gpu) many += (gpu == 0 ? "\"" : ",\"") + std::to_string(gpu) + R"(":"NV")";
  EXPECT_EQ(error_of(with_topology(R"({"cpus":[{"cpu":0}],"gpus":[{"id":"g","links":{)" + many + "}}]}")),
            "$.topology.gpus[0].links: more than 64 links");
}

TEST(TopologyJson, AReferenceIsHandedToTheResolver) {
  TopologyReference seen;
  const auto resolve = [&seen](const TopologyReference& reference) -> Result<Topology> {
    seen = reference;
    return two_cpus();
  };
  const auto synthetic = parsed(R"({"hwloc_synthetic":"core:2 pu:1"})", resolve);
  ASSERT_TRUE(synthetic);
  EXPECT_EQ(synthetic->snapshot.topology, two_cpus());
  EXPECT_EQ(std::get<HwlocSynthetic>(seen).description, "core:2 pu:1");
  ASSERT_TRUE(parsed(R"({"hwloc_xml":"/tmp/host.xml"})", resolve));
  EXPECT_EQ(std::get<HwlocXml>(seen).path, "/tmp/host.xml");
}

TEST(TopologyJson, AReferenceMayHaveGpusBesideIt) {
  const auto resolve = [](const TopologyReference&) -> Result<Topology> { return two_cpus(); };
  const auto snapshot = parsed(R"({"hwloc_synthetic":"core:2 pu:1","gpus":[{"id":"g"}]})", resolve);
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->snapshot.topology.gpus().front().id, "g");
}

TEST(TopologyJson, AReferenceThatFailsNamesItsPath) {
  const auto resolve = [](const TopologyReference&) -> Result<Topology> {
    return fail(ErrorKind::io, "no such file");
  };
  const auto snapshot = parsed(R"({"hwloc_xml":"x"})", resolve);
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().message(), "$.topology.hwloc_xml: no such file");
  EXPECT_EQ(error_of(with_topology(R"({"hwloc_xml":"x"})")),
            "$.topology.hwloc_xml: a topology by reference cannot be resolved here");
}

TEST(TopologyJson, StandsAloneWithItsOwnSchema) {
  const std::string text = to_json(two_cpus());
  EXPECT_THAT(text, StartsWith(R"({"schema":"berth.topology/1","cpus":[{"cpu":0,"core":0,"llc":null,)"));
  const auto again = parse_topology(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, two_cpus());
}

TEST(TopologyJson, RefusesAnotherSchema) {
  const auto topology = parse_topology(R"({"schema":"berth.plan/1","cpus":[{"cpu":0}]})");
  ASSERT_FALSE(topology);
  EXPECT_EQ(
      topology.error().message(),
      "$.schema: expected \"berth.topology/1\", found \"berth.plan/1\"; this is another document of berth");
}

}  // namespace
}  // namespace berth::model
